package schema

import "errors"

// maxCost bounds the evaluations of a validation; each takes up to some microseconds.
const maxCost = 50_000

// errCost and errEndless are why arguments are not validated.
var (
	errCost    = errors.New("the schema and the arguments together take too long to check: give fewer or smaller arguments, or simplify the schema")
	errEndless = errors.New("the schema refers to itself without an end")
)

// value is a value of the arguments with an identity.
type value struct {
	is     any
	bytes  int // about
	list   []*value
	fields map[string]*value
	names  map[string]*value // the names of its properties, as values
}

// weigh gives each value an identity and a size.
func weigh(of any) *value {
	v := &value{is: of, bytes: 8}
	switch of := of.(type) {
	case string:
		v.bytes += len(of)
	case []any:
		for _, e := range of {
			child := weigh(e)
			v.list = append(v.list, child)
			v.bytes += child.bytes
		}
	case map[string]any:
		v.fields, v.names = map[string]*value{}, map[string]*value{}
		for name, e := range of {
			v.fields[name], v.names[name] = weigh(e), weigh(name)
			v.bytes += v.fields[name].bytes + len(name)
		}
	}
	return v
}

type pair struct {
	n *node
	v *value
}

// counter counts the evaluations of a validation, at most, without making them: each pair once.
type counter struct {
	known map[pair]int // -1: it is being counted
	work  int          // of counting
}

// cost is an upper bound of the evaluations of n for v.
func (c *counter) cost(n *node, v *value) (int, error) {
	at := pair{n, v}
	switch known, is := c.known[at]; {
	case known < 0:
		return 0, errEndless
	case is:
		return known, nil
	}
	c.known[at] = -1
	total := n.weight + v.bytes/256 + n.pattern*(8+v.bytes)/512
	if unique, _ := n.raw["uniqueItems"].(bool); unique {
		total += len(v.list) // the library compares hashes
	}
	if c.work += total; c.work > maxCost {
		return 0, errCost
	}
	add := func(sub *node, of *value) error {
		more, err := c.cost(sub, of)
		if total += more; err == nil && total > maxCost {
			err = errCost
		}
		return err
	}
	for _, sub := range n.same {
		if err := add(sub, v); err != nil {
			return 0, err
		}
	}
	if err := c.children(n, v, add); err != nil {
		return 0, err
	}
	c.known[at] = total
	return total, nil
}

// children counts what is applied to what is in a value.
func (c *counter) children(n *node, v *value, add func(*node, *value) error) error {
	for name, field := range v.fields {
		apply := func(subs ...*node) error {
			for _, sub := range subs {
				if err := add(sub, field); err != nil {
					return err
				}
			}
			return nil
		}
		others := true
		if sub, is := n.named[name]; is {
			others = false
			if err := apply(sub); err != nil {
				return err
			}
		}
		if c.work += len(n.patterns); c.work > maxCost {
			return errCost
		}
		for re, sub := range n.patterns {
			if re.MatchString(name) {
				others = false
				if err := apply(sub); err != nil {
					return err
				}
			}
		}
		if others {
			if err := errors.Join(apply(n.children["additionalProperties"]...), apply(n.children["unevaluatedProperties"]...)); err != nil {
				return err
			}
		}
		for _, sub := range n.children["propertyNames"] {
			if err := add(sub, v.names[name]); err != nil {
				return err
			}
		}
	}
	return c.items(n, v, add)
}

func (c *counter) items(n *node, v *value, add func(*node, *value) error) error {
	_, positions := n.raw["items"].([]any) // draft-07
	for i, item := range v.list {
		var subs []*node
		if p := n.children["prefixItems"]; i < len(p) {
			subs = append(subs, p[i])
		} else if p := n.children["items"]; !positions {
			subs = append(subs, p...)
		} else if i < len(p) {
			subs = append(subs, p[i])
		}
		subs = append(append(append(subs, n.children["additionalItems"]...), n.children["contains"]...), n.children["unevaluatedItems"]...)
		for _, sub := range subs {
			if err := add(sub, item); err != nil {
				return err
			}
		}
	}
	return nil
}

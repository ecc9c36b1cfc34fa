package document

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// Encode writes a value as YAML that Decode reads back, in the order of its fields. Lists of
// plain values are in one line.
func Encode(of any) ([]byte, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.UseNumber()
	root, err := readOrdered(decoder)
	if err != nil {
		return nil, err
	}
	return YAML(root.nodes()), nil
}

// Sorted writes a value's JSON as kubectl shows it: sorted keys, and quotes only where a text would
// be read as something else.
func Sorted(of any) ([]byte, error) {
	text, err := json.Marshal(of)
	if err != nil {
		return nil, err
	}
	var value any
	if err := yaml.Unmarshal(text, &value); err != nil {
		return nil, err
	}
	var written bytes.Buffer
	encoder := yaml.NewEncoder(&written)
	encoder.SetIndent(2)
	encoder.CompactSeqIndent()
	err = encoder.Encode(value)
	return written.Bytes(), err
}

// ordered is a value of JSON that keeps the order of its keys.
type ordered struct {
	plain string // of what is neither
	keys  []string
	items []ordered
	list  bool
}

func readOrdered(d *json.Decoder) (o ordered, err error) {
	token, err := d.Token()
	if err != nil {
		return o, err
	}
	delim, nested := token.(json.Delim)
	if !nested {
		return plainOf(token)
	}
	for o.list = delim == '['; d.More(); {
		if !o.list {
			key, err := d.Token()
			if err != nil {
				return o, err
			}
			o.keys = append(o.keys, key.(string))
		}
		item, err := readOrdered(d)
		if err != nil {
			return o, err
		}
		o.items = append(o.items, item)
	}
	_, err = d.Token()
	if len(o.items) == 0 {
		o.plain = map[bool]string{true: "[]", false: "{}"}[o.list]
	}
	return o, err
}

func plainOf(token json.Token) (ordered, error) {
	if text, isText := token.(string); isText {
		return ordered{plain: Quoted(text)}, nil
	}
	text, err := json.Marshal(token)
	return ordered{plain: string(text)}, err
}

// inline is a list of plain values; empty: it is none.
func (o ordered) inline() string {
	texts := make([]string, len(o.items))
	for i, item := range o.items {
		if item.plain == "" {
			return ""
		}
		texts[i] = item.plain
	}
	if !o.list {
		return ""
	}
	return "[" + strings.Join(texts, ", ") + "]"
}

func (o ordered) nodes() []Node {
	nodes := make([]Node, len(o.items))
	for i, item := range o.items {
		if !o.list {
			nodes[i].Key = keyOf(o.keys[i])
		}
		if nodes[i].Text = cmp.Or(item.plain, item.inline()); nodes[i].Text == "" {
			nodes[i].Nodes = item.nodes()
		}
	}
	return nodes
}

// words are what YAML reads as something else than a text.
var words = []string{"", "y", "n", "yes", "no", "on", "off", "true", "false", "null"}

// keyOf quotes a key that is not a plain word.
func keyOf(key string) string {
	plain := func(c rune) bool { return c == '_' || c >= 'a' && c <= 'z' }
	if slices.Contains(words, key) || strings.ContainsFunc(key, func(c rune) bool { return !plain(c) }) {
		return Quoted(key)
	}
	return key
}

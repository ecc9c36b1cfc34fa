package config

import (
	"errors"
	"maps"
	"os/user"
	"slices"
	"strconv"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/kernel/budget"
)

// lookup finds the numbers of users and groups.
type lookup struct {
	user, group func(name string) (string, error)
}

// system asks the host; numbers knows no name but root.
var (
	system = lookup{
		user: func(name string) (string, error) {
			u, err := user.Lookup(name)
			if err != nil {
				return "", err
			}
			return u.Uid, nil
		},
		group: func(name string) (string, error) {
			g, err := user.LookupGroup(name)
			if err != nil {
				return "", err
			}
			return g.Gid, nil
		},
	}
	numbers = lookup{user: onlyRoot, group: onlyRoot}
)

// onlyRoot is the lookup of a text without a host.
func onlyRoot(name string) (string, error) {
	if name == "root" {
		return "0", nil
	}
	return name, nil // no number: refused below
}

// everyone is written for every user.
const everyone = "*"

// allow sets who may use p.
func (p *Provider) allow(at string, f providerFile, ids lookup) error {
	for i, who := range f.Users {
		if who == everyone {
			p.everyone = true
			continue
		}
		id, err := number(document.Join(at, "users."+strconv.Itoa(i)), "user", string(who), ids.user)
		if err != nil {
			return err
		}
		p.users = append(p.users, id)
	}
	for i, who := range f.Groups {
		id, err := number(document.Join(at, "groups."+strconv.Itoa(i)), "group", string(who), ids.group)
		if err != nil {
			return err
		}
		p.groups = append(p.groups, id)
	}
	return nil
}

// number returns the id of a user or group. One that does not exist is an error: created
// later, it would be allowed without anyone's decision.
func number(at, kind, who string, find func(string) (string, error)) (uint32, error) {
	id, err := strconv.ParseUint(who, 10, 32)
	if err != nil && who != "" {
		var text string
		if text, err = find(who); err == nil {
			id, err = strconv.ParseUint(text, 10, 32)
		}
	}
	if err != nil || id == noID {
		return 0, document.Wrong(at, "write a name that exists here, or a number", "there is no %s %.64q", kind, who)
	}
	return uint32(id), nil
}

// noID is (uid_t)-1, which means no id to the kernel.
const noID = 1<<32 - 1

// spendable are the dimensions that calls of models use.
var spendable = []budget.Dimension{budget.Tokens, budget.TokensIn, budget.TokensOut, budget.TokensCached, budget.CostMicros, budget.ModelCalls}

// setBudgets reads what each user may spend. A line of a user's own replaces that of
// everyone, also where it is empty: the user has no limit then.
func (p *Provider) setBudgets(at string, f map[string][]string, ids lookup) error {
	p.budgets = map[uint32][]budget.Limit{}
	for _, who := range slices.Sorted(maps.Keys(f)) {
		limits, err := parseLimits(document.Join(at, who), f[who])
		if err != nil {
			return err
		}
		if who == everyone {
			p.standard = limits
			continue
		}
		id, err := number(document.Join(at, who), "user", who, ids.user)
		if err != nil {
			return err
		}
		if p.budgets[id] != nil {
			return document.Wrong(document.Join(at, who), "name each user once", "user %d has a budget already", id)
		}
		p.budgets[id] = limits
	}
	return nil
}

// parseLimits reads the limits of one user. One that no call can reach is refused, as are two
// of one dimension: only one of them would hold.
func parseLimits(at string, texts []string) ([]budget.Limit, error) {
	limits := make([]budget.Limit, 0, len(texts))
	for _, text := range texts {
		limit, err := budget.ParseLimit(text)
		var known *agent.Error
		if errors.As(err, &known) {
			return nil, document.Wrong(at, known.Hint, "%s", known.Message)
		}
		if !slices.Contains(spendable, limit.Dimension) {
			return nil, document.Wrong(at, "use tokens, tokens_in, tokens_out, tokens_cached, cost or model_calls", "calls of models use no %s", limit.Dimension)
		}
		if slices.ContainsFunc(limits, func(l budget.Limit) bool { return l.Dimension == limit.Dimension }) {
			return nil, document.Wrong(at, "write one limit for each dimension", "%s is limited twice", limit.Dimension)
		}
		limits = append(limits, limit)
	}
	return limits, nil
}

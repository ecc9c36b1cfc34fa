package build

import (
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/rlimits"
)

// readUlimits replaces the level's limits by those that were asked for, name by name, and
// sorts them: the order has no meaning.
func (b *builder) readUlimits() error {
	limits := slices.Clone(b.spec.Limits.Rlimits)
	for _, text := range b.asked.Ulimits {
		limit, err := parseUlimit(text)
		if err != nil {
			return err
		}
		limits = slices.DeleteFunc(limits, func(other agent.Rlimit) bool { return other.Name == limit.Name })
		limits = append(limits, limit)
	}
	slices.SortFunc(limits, func(a, b agent.Rlimit) int { return strings.Compare(a.Name, b.Name) })
	b.spec.Limits.Rlimits = limits
	return nil
}

// parseUlimit reads docker's NAME=SOFT[:HARD]. go-units, docker's own parser, is not used:
// it does not know "as", and its values are int64, in which RLIM_INFINITY does not fit.
func parseUlimit(text string) (agent.Rlimit, error) {
	const form = "write NAME=SOFT:HARD, for example nofile=1024:2048"
	name, values, hasValue := strings.Cut(text, "=")
	if _, known := rlimits.Resource(name); !known {
		return agent.Rlimit{}, invalid("ulimit", "it takes "+strings.Join(rlimits.Names(), ", "), "there is no resource limit %q", name)
	}
	if !hasValue {
		return agent.Rlimit{}, invalid("ulimit", form, "%q has no value", text)
	}
	softText, hardText, both := strings.Cut(values, ":")
	// As docker: one value is both limits.
	if !both {
		hardText = softText
	}
	soft, err := parseRlimitValue(softText)
	hard, herr := parseRlimitValue(hardText)
	switch {
	case err != nil || herr != nil:
		return agent.Rlimit{}, invalid("ulimit", form+"; -1 means no limit", "%q is not a limit", text)
	case soft > hard:
		return agent.Rlimit{}, invalid("ulimit", form, "%s has a soft limit above the hard one", text)
	}
	return agent.Rlimit{Name: name, Soft: soft, Hard: hard}, nil
}

// parseRlimitValue reads a number in the resource's own unit (bytes, seconds, a count).
func parseRlimitValue(text string) (uint64, error) {
	if text == "-1" {
		return agent.RlimitInfinity, nil
	}
	return strconv.ParseUint(text, 10, 63)
}

package settings

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
	"clove.run/clove/internal/rlimits"
)

// Ulimits are limits of each process.
var Ulimits = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{{
		Flag: Ulimit, Key: "ulimits", Form: Amounts, Flags: ByName, Extends: ByName, Group: GroupLimits,
		Usage: "resource limit as NAME=SOFT[:HARD], -1 for none", Default: "nofile=4096, core=0, nice=0, rtprio=0",
		Pod:  "set them in the command (sh -c 'ulimit …'), or for all of a node in containerd's base_runtime_spec",
		Doc:  "resource limits of each process: nofile: 1024, or SOFT:HARD",
		Read: readUlimits, Write: writeUlimits, Wider: widerUlimits,
		Learn: &Learn{Entry: "nofile", Seen: descriptors, Round: upTo(64), Unit: inCounts},
	}}}
})

// readUlimits replaces the level's limits by those that were asked for, name by name, and
// sorts them: the order has no meaning.
func readUlimits(r *Reader, texts []string) error {
	limits := slices.Clone(r.Spec.Limits.Rlimits)
	for _, text := range texts {
		limit, err := parseUlimit(text)
		if err != nil {
			return err
		}
		limits = slices.DeleteFunc(limits, func(other agent.Rlimit) bool { return other.Name == limit.Name })
		limits = append(limits, limit)
	}
	slices.SortFunc(limits, func(a, b agent.Rlimit) int { return strings.Compare(a.Name, b.Name) })
	r.Spec.Limits.Rlimits = limits
	return nil
}

// parseUlimit reads docker's NAME=SOFT[:HARD]. go-units, docker's own parser, is not used:
// it does not know "as", and its values are int64, in which RLIM_INFINITY does not fit.
func parseUlimit(text string) (agent.Rlimit, error) {
	const form = "write NAME=SOFT:HARD, for example nofile=1024:2048"
	name, values, hasValue := strings.Cut(text, "=")
	if _, known := rlimits.Resource(name); !known {
		return agent.Rlimit{}, Invalid(Ulimit, document.Meant(name, rlimits.Names(), "it takes "+strings.Join(rlimits.Names(), ", ")), "there is no resource limit %q", name)
	}
	if !hasValue {
		return agent.Rlimit{}, Invalid(Ulimit, form, "%q has no value", text)
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
		return agent.Rlimit{}, Invalid(Ulimit, form+"; -1 means no limit", "%q is not a limit", text)
	case soft > hard:
		return agent.Rlimit{}, Invalid(Ulimit, form, "%s has a soft limit above the hard one", text)
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

func writeUlimits(s agent.Spec) (entries []string) {
	one := func(n uint64) string {
		if n == agent.RlimitInfinity {
			return "-1"
		}
		return strconv.FormatUint(n, 10)
	}
	for _, limit := range s.Limits.Rlimits {
		entry := limit.Name + "=" + one(limit.Soft)
		if limit.Soft != limit.Hard {
			entry += ":" + one(limit.Hard)
		}
		entries = append(entries, entry)
	}
	slices.Sort(entries)
	return entries
}

// widerUlimits: one that only wide lacks is the kernel's own.
func widerUlimits(base, wide agent.Spec) (all []Difference) {
	say := func(n uint64) string {
		if n == agent.RlimitInfinity {
			return "no limit"
		}
		return strconv.FormatUint(n, 10)
	}
	hard := map[string]uint64{}
	for _, limit := range wide.Limits.Rlimits {
		hard[limit.Name] = limit.Hard
	}
	for _, limit := range base.Limits.Rlimits {
		have, found := hard[limit.Name]
		if !found {
			have = agent.RlimitInfinity
		}
		if have > limit.Hard {
			all = append(all, Difference{"ulimits." + limit.Name, say(limit.Hard), say(have)})
		}
	}
	return all
}

// descriptors are learned with a larger floor where they are made faster than they are
// sampled: by everything but opening files.
func descriptors(o agent.Observed) (peak, floor int64) {
	if o.CallsKnown && len(o.Calls) == 0 {
		return orUnknown(o.Peaks.Descriptors), 64
	}
	return orUnknown(o.Peaks.Descriptors), 256
}

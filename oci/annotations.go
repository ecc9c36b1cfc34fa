package oci

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

// Prefix begins every annotation that is clove's. A key below it that clove
// does not know is a mistake: ignored, it would be a limit that nobody holds.
const Prefix = "run.clove."

// The annotations, with the form of each one's value.
const (
	AnnotationTimeout      = Prefix + "timeout"            // 90s, 30m, 2h: from the start, at least 1ms
	AnnotationNetworkMode  = Prefix + "network.mode"       // an agent.Network word but host
	AnnotationNetworkAllow = Prefix + "network.allow"      // targets, with commas or white space between them
	AnnotationNetworkDeny  = Prefix + "network.deny"       // the same
	AnnotationMemory       = Prefix + "limits.memory"      // bytes; K, M, G and T are powers of 1024, also with an i
	AnnotationMemorySwap   = Prefix + "limits.memory-swap" // the same, of memory and swap together
	AnnotationPids         = Prefix + "limits.pids"        // processes and threads, as the cgroup counts
	AnnotationCPUs         = Prefix + "limits.cpus"        // CPU seconds per second, from 0.01 on
	AnnotationRecord       = Prefix + "record"             // path of a .json file right in RecordsDir
)

// RecordsDir is the one directory that exit records go to. Whoever may write
// annotations must not choose which file of the host root writes.
const RecordsDir = "/var/lib/clove/records"

// RecordID stands in a record's name for the container's id, where several
// containers have the same annotations.
const RecordID = "{id}"

// Rules are what a bundle's annotations ask of clove, understood.
type Rules struct {
	Limits  agent.Limits       // zero: the engine's own holds. WallClock is the deadline, from the start
	Network string             // an agent.Network word; "": nothing is asked
	Egress  []agent.EgressRule // canonical
	Record  string             // file that the exit record goes to; "": none
	Member  bool               // one of a pod, whose sandbox has the network's rules
}

// annotations is every annotation with what reads its value.
var annotations = []struct {
	key  string
	read func(value string, r *Rules) error
}{
	{AnnotationTimeout, readTimeout},
	{AnnotationNetworkMode, readMode},
	{AnnotationNetworkAllow, func(value string, r *Rules) error { return readTargets(value, AnnotationNetworkAllow, r) }},
	{AnnotationNetworkDeny, func(value string, r *Rules) error { return readTargets(value, AnnotationNetworkDeny, r) }},
	{AnnotationMemory, func(value string, r *Rules) error { return readSize(value, &r.Limits.MemoryBytes) }},
	{AnnotationMemorySwap, func(value string, r *Rules) error { return readSize(value, &r.Limits.MemorySwapBytes) }},
	{AnnotationPids, readPids},
	{AnnotationCPUs, readCPUs},
	{AnnotationRecord, readRecord},
}

// Parse understands all annotations that are clove's, or says which one it does
// not: an *agent.Error of KindInvalid, whose Step names it. Those of others are
// theirs. What of it is a certain container's, For says.
func Parse(given map[string]string) (Rules, error) {
	var rules Rules
	for _, key := range slices.Sorted(maps.Keys(given)) {
		if !ours(key) {
			continue
		}
		if err := rules.read(key, given[key]); err != nil {
			return Rules{}, err
		}
	}
	return rules, rules.validate()
}

// validate judges all annotations together by what every edge refuses.
func (r *Rules) validate() error {
	if err := r.Limits.ValidateGiven(); err != nil {
		return named("run.clove.limits", err)
	}
	if err := agent.ValidateRules(r.Egress); err != nil {
		return named(AnnotationNetworkMode, err)
	}
	return r.checkNetwork()
}

// ours also takes what was meant to be clove's.
func ours(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasPrefix(lower, Prefix) || lower == strings.TrimSuffix(Prefix, ".")
}

func (r *Rules) read(key, value string) error {
	for _, a := range annotations {
		if a.key != key {
			continue
		}
		return named(key, a.read(value, r))
	}
	known := make([]string, 0, len(annotations))
	for _, a := range annotations {
		known = append(known, strings.TrimPrefix(a.key, Prefix))
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + key, Message: "there is no such annotation",
		Hint: "after " + Prefix + " comes one of " + strings.Join(known, ", ")}
}

// named adds the annotation to a reader's error.
func named(key string, err error) error {
	if err == nil {
		return nil
	}
	named := &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + key, Message: err.Error()}
	var known *agent.Error
	if errors.As(err, &known) {
		named.Kind, named.Message, named.Hint = known.Kind, known.Message, known.Hint
	}
	return named
}

// checkNetwork judges the network's annotations together, by the rules that a
// local run is judged by.
func (r *Rules) checkNetwork() error {
	if len(r.Egress) > 0 && r.Network == "" {
		return &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + r.Egress[0].Source, Message: "there are targets, but no mode that they belong to",
			Hint: "add " + AnnotationNetworkMode + ": " + agent.NetworkAllowlist + " or " + agent.NetworkPublic}
	}
	if r.Network == "" {
		return nil
	}
	_, err := egress.New(egress.Config{Mode: r.Network, Rules: r.Egress})
	return named(AnnotationNetworkMode, err)
}

// timeoutCeiling is far behind every deadline and far below an overflow: it is
// added to the time since boot, in nanoseconds.
const timeoutCeiling = 10 * 365 * 24 * time.Hour

func readTimeout(value string, r *Rules) error {
	const hint = "write a number and a unit, for example 90s, 30m or 2h"
	d, err := time.ParseDuration(value)
	switch {
	case err != nil || strings.HasPrefix(value, "+"):
		return invalid(hint, "%q is not a time", value)
	case d <= 0:
		return invalid("leave the annotation away for no deadline", "%q leaves the agent no time", value)
	case d < time.Millisecond:
		return invalid("give at least 1ms", "%q is too short", value)
	case d > timeoutCeiling:
		return invalid("leave the annotation away for no deadline", "%q is too long", value)
	}
	r.Limits.WallClock = d
	return nil
}

func invalid(hint, format string, args ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

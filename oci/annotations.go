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

// Prefix begins every annotation of clove's. An unknown key below it is an error: if it
// were ignored, a limit with a misspelt name would not be enforced.
const Prefix = "run.clove."

// The annotations, with the form of each one's value.
const (
	AnnotationTimeout      = Prefix + "timeout"            // 90s, 30m, 2h: from the start, at least 1ms
	AnnotationNetworkMode  = Prefix + "network.mode"       // a word of agent.Network, except host
	AnnotationNetworkAllow = Prefix + "network.allow"      // targets, with commas or white space between them
	AnnotationNetworkDeny  = Prefix + "network.deny"       // as network.allow
	AnnotationMemory       = Prefix + "limits.memory"      // bytes; K, M, G and T are powers of 1024, also with an i
	AnnotationMemorySwap   = Prefix + "limits.memory-swap" // as limits.memory, for memory and swap together
	AnnotationPids         = Prefix + "limits.pids"        // processes and threads, as the cgroup counts
	AnnotationCPUs         = Prefix + "limits.cpus"        // CPU seconds per second, from 0.01 on
	AnnotationRecord       = Prefix + "record"             // path of a .json file directly in RecordsDir
)

// RecordsDir is the one directory that exit records go to. The author of annotations must
// not choose which file of the host root writes.
const RecordsDir = "/var/lib/clove/records"

// RecordID in a record's name stands for the container's id. All containers of a Job have
// the same annotations, and each needs a record of its own.
const RecordID = "{id}"

// Rules are a bundle's annotations, parsed.
type Rules struct {
	Limits  agent.Limits       // zero: the engine's own limit holds. WallClock is the deadline, counted from the start
	Network string             // a word of agent.Network; "": no network rules
	Egress  []agent.EgressRule // canonical
	Record  string             // file that the exit record goes to; "": none
	Member  bool               // a container of a pod whose sandbox has the network rules
}

// annotations lists every annotation with the function that reads its value.
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

// notYet are the flags of clove run that need a socket of the agent's own. An engine's
// container has none.
var notYet = []string{"agent-socket", "grant", "budget", "at-end", "on-warn", "on-end", "on-denial", "namespace", "idle"}

// Parse reads all annotations of clove's, or returns an *agent.Error of KindInvalid whose
// Step names the first one that is wrong. Annotations of others are ignored. For says which
// of the rules apply to a certain container.
func Parse(given map[string]string) (Rules, error) {
	var rules Rules
	// Sorted, so that of several mistakes the same one is reported each time.
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

// validate checks the annotations together, with the checks that every way into clove
// applies.
func (r *Rules) validate() error {
	if err := r.Limits.ValidateGiven(); err != nil {
		return named("run.clove.limits", err)
	}
	if err := agent.ValidateRules(r.Egress); err != nil {
		return named(AnnotationNetworkMode, err)
	}
	return r.checkNetwork()
}

// ours reports whether a key is clove's or was meant to be: Run.Clove.timeout and run.clove
// alone are mistakes to report, not another program's keys.
func ours(key string) bool {
	lower := strings.ToLower(key)
	return strings.HasPrefix(lower, Prefix) || lower == strings.TrimSuffix(Prefix, ".")
}

// read finds an annotation by its exact key. The error for an unknown one lists those that
// exist.
func (r *Rules) read(key, value string) error {
	for _, a := range annotations {
		if a.key != key {
			continue
		}
		return named(key, a.read(value, r))
	}
	if slices.Contains(notYet, strings.TrimPrefix(key, Prefix)) {
		return &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + key, Message: "not for OCI containers yet",
			Hint: "omit it: an agent of clove run has a socket, grants and budgets"}
	}
	known := make([]string, 0, len(annotations))
	for _, a := range annotations {
		known = append(known, strings.TrimPrefix(a.key, Prefix))
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + key, Message: "there is no such annotation",
		Hint: "after " + Prefix + " comes one of " + strings.Join(known, ", ")}
}

// named adds the annotation's key to a reader's error, and keeps its kind and hint.
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

// checkNetwork checks the network annotations together, with the rules' compiler that a
// local run uses. Targets without a mode are refused: which mode is meant changes what they
// do.
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

// timeoutCeiling is ten years: longer than any agent, and far from an overflow of int64,
// because the monitor adds it to the time since boot in nanoseconds.
const timeoutCeiling = 10 * 365 * 24 * time.Hour

// readTimeout reads Go's durations. 0 is refused, because elsewhere it means no limit.
func readTimeout(value string, r *Rules) error {
	const hint = "write a number and a unit, for example 90s, 30m or 2h"
	d, err := time.ParseDuration(value)
	switch {
	case err != nil || strings.HasPrefix(value, "+"):
		return invalid(hint, "%q is not a time", value)
	case d <= 0:
		return invalid("omit the annotation for no deadline", "%q leaves the agent no time", value)
	case d < time.Millisecond:
		return invalid("give at least 1ms", "%q is too short", value)
	case d > timeoutCeiling:
		return invalid("omit the annotation for no deadline", "%q is too long", value)
	}
	r.Limits.WallClock = d
	return nil
}

func invalid(hint, format string, args ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, args...), Hint: hint}
}

package learn

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies"
)

// Observation is what one run used, or several of one agent.
type Observation struct {
	Version int   `json:"version"`
	Runs    []Run `json:"runs"`
	// Under is the policy that the runs were under: the name of a level, or the path of a document.
	Under string `json:"under"`
	// Given is what the runs were allowed, as a document says it: the bound of what is learned.
	Given policies.Document `json:"given"`
	// Reads: the document has a list of what may be read.
	Reads bool `json:"reads"`
	agent.Observed
}

// Run is one run of an observation.
type Run struct {
	ID       agent.ID     `json:"id"`
	Name     string       `json:"name"`
	Command  []string     `json:"command"`
	Started  time.Time    `json:"started"`
	Status   agent.Status `json:"status"`
	ExitCode int          `json:"exit_code"`
}

// Failed reports whether the run did not end as a success.
func (r Run) Failed() bool { return r.Status != agent.StatusExited || r.ExitCode != 0 }

// version is the version that this clove writes and reads.
const version = 1

// MostBytes bounds an observation's file.
const MostBytes = 32 << 20

const mostRuns = 1000

// New is the observation of one run. under is where the run's defaults came from: a level, or
// the path of a document.
func New(spec agent.Spec, under string, record agent.Record, seen agent.Observed) Observation {
	given, left := Given(spec)
	o := Observation{Version: version, Under: under, Given: given, Observed: seen, Runs: []Run{{ID: spec.ID, Name: spec.Name,
		Command: spec.Command, Started: record.Started, Status: record.Status, ExitCode: record.ExitCode}}}
	o.Incomplete = append(slices.Clone(o.Incomplete), left...)
	return o.sorted()
}

// Text is the observation as its file has it.
func (o Observation) Text() ([]byte, error) {
	text, err := json.MarshalIndent(o, "", " ")
	return append(text, '\n'), err
}

// Parse reads an observation. An error is an agent.Error of KindInvalid.
func Parse(text []byte) (Observation, error) {
	var o Observation
	if len(text) > MostBytes {
		return o, invalid("name the file that clove run --learn wrote", "it has %d bytes, and may have %d", len(text), MostBytes)
	}
	decoder := json.NewDecoder(bytes.NewReader(text))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&o); err != nil {
		return o, invalid("name the file that clove run --learn wrote", "it is no observation: %v", err)
	}
	if decoder.More() {
		return o, invalid("name the file that clove run --learn wrote", "something stands behind the observation")
	}
	if err := o.check(); err != nil {
		return o, err
	}
	return o.sorted(), nil
}

// check rejects what New never writes.
func (o Observation) check() error {
	hint := "name the file that clove run --learn wrote"
	switch {
	case o.Version != version:
		return invalid("this clove reads version 1", "it has version %d", o.Version)
	case len(o.Runs) == 0:
		return invalid(hint, "it is of no run")
	case len(o.Runs) > mostRuns:
		return invalid("merge fewer", "it is of %d runs, and may be of %d", len(o.Runs), mostRuns)
	case !slices.Contains(policies.Levels, o.Under) && !path.IsAbs(o.Under):
		return invalid(hint, "under: %.64q is neither a level nor an absolute path", o.Under)
	case len(o.Calls) > agent.MostObservedCalls || len(o.Targets) > agent.MostObservedTargets:
		return invalid(hint, "it has more entries than clove writes")
	}
	for _, r := range o.Runs {
		if r.ID == "" || agent.ValidateName(r.Name) != nil {
			return invalid(hint, "runs: %.64q is no name of a run", r.Name)
		}
	}
	for _, list := range [][]string{o.Executed, o.Written, o.Read, o.Folders, o.Programs, o.Listed, problems(o)} {
		if len(list) > agent.MostObservedPaths {
			return invalid(hint, "it has more paths than clove writes")
		}
		for _, file := range list {
			if !path.IsAbs(file) || strings.ContainsRune(file, 0) {
				return invalid(hint, "%.64q is no absolute path", file)
			}
		}
	}
	return o.checkTargets(hint)
}

// problems are the paths that no list can name.
func problems(o Observation) (paths []string) {
	for _, p := range o.Unlistable {
		paths = append(paths, p.Path)
	}
	return paths
}

func (o Observation) checkTargets(hint string) error {
	for _, t := range o.Targets {
		if !slices.Contains(targetKinds, t.Kind) {
			return invalid(hint, "targets: %.64q is no kind of target", t.Kind)
		}
		if _, err := egress.ParseTarget(written(t)); err != nil || strings.Contains(t.Name+t.Address, "/") {
			return invalid(hint, "targets: %.64q is no target", t.Name+t.Address)
		}
	}
	p := o.Peaks
	for _, n := range []int64{p.MemoryBytes, p.Pids, p.CPUMS, p.WallMS, p.OutputBytes, p.DiskBytes, p.ShmBytes, p.Descriptors, p.Connections} {
		if n < 0 || n > mostPeak {
			return invalid(hint, "peaks: %d is no figure of a run", n)
		}
	}
	return nil
}

// mostPeak is above every figure, and twice of it overflows nothing.
const mostPeak = 1 << 50

// The kinds of targets (egress/broker).
const (
	kindDNS      = "dns"
	kindUDP      = "udp"
	kindHostPort = "host-port"
)

var targetKinds = []string{kindDNS, "tcp", kindUDP, kindHostPort}

func invalid(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, values...), Hint: hint}
}

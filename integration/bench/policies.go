package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"time"

	"clove.run/clove/seccomp"
)

// policyResults are the figures of the part about policies.
type policyResults struct {
	Absent  map[string]string `json:"absent"`
	Loads   []policyFigure    `json:"loads"`     // of agents under a policy
	Answers []policyFigure    `json:"documents"` // of documents, in this process
}

// policyFigure is one line: a load, or what is asked of a document.
type policyFigure struct {
	What   string `json:"what"`
	Peer   string `json:"peer,omitempty"`
	Unit   string `json:"unit"`
	Values spread `json:"values"`
	Ratio  *ratio `json:"ratio,omitempty"` // to the first peer
}

// confined is one way to run a load. All of them have a file system in memory at /tmp.
type confined struct {
	name string
	does string // for the reader of the table
	// command runs this binary in the role of a load; a copy of it is at program on the host.
	command func(b *bench, id, program string) []string
}

// confinements are compared on the same loads; the first one is what the others are divided by.
var confinements = []confined{
	{"runc, Docker's filter", "Docker's default filter of system calls; host's / read-only, no overlay, no Landlock", func(b *bench, id, _ string) []string {
		return []string{b.runc, "--root", filepath.Join(b.scratch, "runc"), "run", "--bundle", b.loadBundle(), id}
	}},
	{"clove, standard", "the default policy: overlays, the filter, Landlock", underPolicy("standard")},
	{"clove, a read-only volume", "the default policy, and one -v that is read-only: calls that change files are looked at", watched},
	{"clove, strict", "the filter strict and a read-only root (the level sandboxed): calls that change files are looked at", underPolicy("sandboxed")},
	{"clove, learning", "the default policy in a run that is observed (--learn)", learning},
}

// underPolicy runs a load under a level. The program is shown by a mount, so that no time goes
// into a copy of it.
func underPolicy(level string) func(*bench, string, string) []string {
	return func(b *bench, _, program string) []string { return b.policyCommand(b.clove, level, program) }
}

// watched runs a load beside a place that is read-only for the run.
func watched(b *bench, _, program string) []string {
	return slices.Insert(b.policyCommand(b.clove, "standard", program), 2, "-v", filepath.Dir(program)+":/again:ro")
}

// learning runs a load under the default policy, and learns a document from it.
func learning(b *bench, id, program string) []string {
	return slices.Insert(b.policyCommand(b.clove, "standard", program), 2, "--learn", filepath.Join(b.scratch, "learned-"+id+".yaml"))
}

// earlier is an earlier clove (BEFORE), such as one without what is to be measured.
var earlier = confined{"an earlier clove, standard", "the clove of BEFORE", func(b *bench, _, program string) []string { return b.policyCommand(b.before, "standard", program) }}

func (b *bench) policyCommand(clove, level, program string) []string {
	return []string{clove, "run", "--rm", "--policy", level, "--memory", "1G", "--pids-limit", "512", "--tmpfs", "/tmp",
		"-v", filepath.Dir(program) + ":/load", "--", "/load/" + filepath.Base(program), roleLoad}
}

func (b *bench) loadBundle() string { return filepath.Join(b.scratch, "bundle-load") }

// measurePolicies compares the loads, and then measures documents.
func (b *bench) measurePolicies() (*policyResults, error) {
	r := &policyResults{Absent: map[string]string{}}
	program, err := b.placeLoad()
	if err != nil {
		return nil, err
	}
	ways := confinements
	if b.before != "" {
		ways = append(slices.Clone(ways), earlier)
	}
	if err := b.readyLoads(program); err != nil {
		r.Absent[ways[0].name] = err.Error()
		ways = ways[1:]
	}
	taken := map[string][][]float64{}
	for round := range warmups + b.rounds {
		for i, way := range ways {
			times, err := b.underLoad(way, program)
			if err != nil {
				return nil, fmt.Errorf("cannot measure %s: %w", way.name, err)
			}
			for what, ms := range times {
				if taken[what] == nil {
					taken[what] = make([][]float64, len(ways))
				}
				if round >= warmups {
					taken[what][i] = append(taken[what][i], ms)
				}
			}
		}
	}
	for _, l := range loads {
		for i, way := range ways {
			values := taken[l.name][i]
			r.Loads = append(r.Loads, policyFigure{What: l.name, Peer: way.name, Unit: "ms", Values: spreadOf(values), Ratio: ratioOf(values, taken[l.name][0], 1)})
		}
	}
	r.Answers, err = measureDocuments(b.scratch, b.rounds)
	return r, err
}

// placeLoad copies this binary where every peer can execute it.
func (b *bench) placeLoad() (string, error) {
	dir := filepath.Join(b.scratch, "load")
	if err := os.Mkdir(dir, 0o755); err != nil {
		return "", err
	}
	from, err := os.Open(b.self)
	if err != nil {
		return "", err
	}
	defer from.Close()
	to, err := os.OpenFile(filepath.Join(dir, "bench"), os.O_CREATE|os.O_WRONLY, 0o755)
	if err != nil {
		return "", err
	}
	_, err = io.Copy(to, from)
	return to.Name(), errors.Join(err, to.Close())
}

// readyLoads prepares runc, and a bundle that runs the load under Docker's default filter.
func (b *bench) readyLoads(program string) error {
	if err := b.readyRunc(); err != nil {
		return err
	}
	filter, err := seccomp.Docker()
	if err != nil {
		return err
	}
	config, err := bundleConfig(filepath.Join(b.scratch, "root"), []string{program, roleLoad})
	if err != nil {
		return err
	}
	config["linux"].(object)["seccomp"] = filter
	return writeConfig(b.loadBundle(), config)
}

// underLoad runs all loads once, and returns what each took by its own clock, so that no start
// is in the figures.
func (b *bench) underLoad(way confined, program string) (times map[string]float64, err error) {
	cmd := b.prepare(peer{command: func(b *bench, id string, _ ...string) []string { return way.command(b, id, program) }}, nil)
	var said, stderr tail
	cmd.Stdout, cmd.Stderr = &said, &stderr
	if err = b.thread.Do(cmd.Start); err == nil {
		err = cmd.Wait()
	}
	if err != nil {
		return nil, fmt.Errorf("%v: %w: %s", cmd.Args, err, stderr.text)
	}
	return times, json.Unmarshal(said.text, &times)
}

// timed is how long one load takes, in milliseconds.
func timed(do func() error) (float64, error) {
	began := time.Now()
	err := do()
	return millis(time.Since(began)), err
}

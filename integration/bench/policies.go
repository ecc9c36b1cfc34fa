package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"time"

	"clove.run/clove/seccomp"
)

// confinements are ways to run a load, compared on the same loads; the first one is what the
// others are divided by. All of them have a file system in memory at /tmp. Their program is this
// binary in the role of a load.
var confinements = []peer{
	{name: "runc, Docker's filter", does: "Docker's default filter of system calls; host's / read-only, no overlay, no Landlock", command: func(b *bench, id string, _ ...string) []string {
		return []string{b.runc, "--root", filepath.Join(b.scratch, "runc"), "run", "--bundle", loadBundle(b), id}
	}},
	{name: "clove, standard", does: "the default policy: overlays, the filter, Landlock", command: underPolicy("standard")},
	{name: "clove, a read-only volume", does: "the default policy, and one -v that is read-only: calls that change files are looked at", command: watched},
	{name: "clove, strict", does: "the filter strict and a read-only root (the level sandboxed): calls that change files are looked at", command: underPolicy("sandboxed")},
	{name: "clove, learning", does: "the default policy in a run that is observed (--learn)", command: learning},
}

// underPolicy runs a load under a level. The program is shown by a mount, so that no time goes
// into a copy of it.
func underPolicy(level string) func(*bench, string, ...string) []string {
	return func(b *bench, _ string, program ...string) []string {
		return policyCommand(b, b.clove, level, program[0])
	}
}

// watched runs a load beside a place that is read-only for the run.
func watched(b *bench, _ string, program ...string) []string {
	return slices.Insert(policyCommand(b, b.clove, "standard", program[0]), 2, "-v", filepath.Dir(program[0])+":/again:ro")
}

// learning runs a load under the default policy, and learns a document from it.
func learning(b *bench, id string, program ...string) []string {
	return slices.Insert(policyCommand(b, b.clove, "standard", program[0]), 2, "--learn", filepath.Join(b.scratch, "learned-"+id+".yaml"))
}

// earlier is an earlier clove (BEFORE), such as one without what is to be measured.
var earlier = peer{name: "an earlier clove, standard", does: "the clove of BEFORE", command: func(b *bench, _ string, program ...string) []string {
	return policyCommand(b, b.before, "standard", program[0])
}}

func policyCommand(b *bench, clove, level, program string) []string {
	return []string{clove, "run", "--rm", "--policy", level, "--memory", "1G", "--pids-limit", "512", "--tmpfs", "/tmp",
		"-v", filepath.Dir(program) + ":/load", "--", "/load/" + filepath.Base(program), roleLoad}
}

func loadBundle(b *bench) string { return filepath.Join(b.scratch, "bundle-load") }

// measurePolicies compares the loads.
func (b *bench) measurePolicies(t *table) error {
	program, err := placeLoad(b)
	if err != nil {
		return err
	}
	ways := confinements
	if b.before != "" {
		ways = append(slices.Clone(ways), earlier)
	}
	if err := readyLoads(b, program); err != nil {
		t.Absent[ways[0].name] = err.Error()
		ways = ways[1:]
	}
	var names []string
	for _, way := range ways {
		t.describe(way.name, way.does)
		names = append(names, way.name)
	}
	s, err := b.inRounds(func(_ int, s samples) error {
		for _, way := range ways {
			times, err := underLoad(b, way, program)
			if err != nil {
				return fmt.Errorf("cannot measure %s: %w", way.name, err)
			}
			for what, ms := range times {
				s.add(what, way.name, ms)
			}
		}
		return nil
	})
	for _, l := range loads {
		t.Figures = append(t.Figures, comparison{what: l.name, unit: unitMS}.figures(names, s)...)
	}
	return err
}

// placeLoad copies this binary where every peer can execute it.
func placeLoad(b *bench) (string, error) {
	program := filepath.Join(b.scratch, "load", "bench")
	return program, errors.Join(os.Mkdir(filepath.Dir(program), 0o755), copyProgram(b.self, program))
}

// readyLoads prepares runc, and a bundle that runs the load under Docker's default filter.
func readyLoads(b *bench, program string) error {
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
	return writeConfig(loadBundle(b), config)
}

// underLoad runs all loads once, and returns what each took by its own clock, so that no start
// is in the figures.
func underLoad(b *bench, way peer, program string) (times map[string]float64, err error) {
	said, err := b.said(b.prepare(way, []string{program}))
	if err != nil {
		return nil, err
	}
	return times, json.Unmarshal(said, &times)
}

// timed is how long one load takes, in milliseconds.
func timed(do func() error) (float64, error) {
	began := time.Now()
	err := do()
	return millis(time.Since(began)), err
}

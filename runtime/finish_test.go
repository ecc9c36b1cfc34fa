package runtime

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/initproto"
)

// TestFiguresThatAreNotThereAreAbsent: a figure that is not known is absent, and one that is 0
// is 0.
func TestFiguresThatAreNotThereAreAbsent(t *testing.T) {
	t.Parallel()
	failed, err := json.Marshal(usage(outcome{startError: errors.New("x")}, cgroups.Stats{}))
	if err != nil || string(failed) != "{}" {
		t.Errorf("nothing is known: %s, %v", failed, err)
	}
	zero, cpu := int64(0), 1500*time.Microsecond
	known, _ := json.Marshal(usage(outcome{cpu: &cpu, output: 0, diskUsed: &zero}, cgroups.Stats{PidsPeak: &zero}))
	if string(known) != `{"cpu_ms":1,"pids_peak":0,"disk_bytes":0,"output_bytes":0}` {
		t.Errorf("known: %s", known)
	}
	spent := initproto.Spent{CPUNS: 7e6, MemoryPeakBytes: 5}
	launched, _ := json.Marshal(usage(outcome{cpu: &cpu, spent: spent, startError: errors.New("x")}, cgroups.Stats{}))
	if string(launched) != `{"cpu_ms":1,"start_cpu_ms":7,"start_memory_peak_bytes":5}` {
		t.Errorf("beside the launch: %s", launched)
	}
	none, _ := json.Marshal(events(outcome{}, cgroups.Stats{}))
	if string(none) != "{}" {
		t.Errorf("events: %s", none)
	}
}

// The record says to whom the run belongs; a run that a person started has no parent.
func TestTheRecordNamesParentAndNamespace(t *testing.T) {
	t.Parallel()
	l := &launch{spec: testSpec(), run: agent.Run{Parent: "00112233aabbccdd"}, probes: &probes{cgroups: &cgroups.Host{}}}
	l.spec.Kernel.Namespace = "acme/research"
	if r := l.record(outcome{}, cgroups.Stats{}, time.Now()); r.Version != 2 || r.Parent != l.run.Parent || r.Namespace != "acme/research" {
		t.Errorf("%+v", r)
	}
	alone, err := json.Marshal(recorded(agent.Run{}, outcome{}, time.Now()))
	if text := string(alone); err != nil || strings.Contains(text, "parent") || strings.Contains(text, "namespace") || strings.Contains(text, "models") {
		t.Errorf("%s, %v", text, err)
	}
}

// recorded makes a record without a host.
func recorded(run agent.Run, seen outcome, ended time.Time) agent.Record {
	l := &launch{spec: testSpec(), run: run, probes: &probes{cgroups: &cgroups.Host{}},
		held: enforcement{enforced: map[string]string{"memory": "cgroup2"}, unenforced: []string{}}}
	return l.record(seen, cgroups.Stats{}, ended)
}

func TestARecordHasEveryListAndTime(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 1, 2, 3, 4, 5, 6, time.FixedZone("far", 3600))
	record := recorded(agent.Run{Created: created}, outcome{exitKnown: true, wall: 1999 * time.Microsecond}, created.Add(time.Second))
	text, err := json.Marshal(record)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"denials":[]`, `"unenforced":[]`, `"signal":null`, `"enforced":{"memory":"cgroup2"}`,
		`"started":"2026-01-02T02:04:05.000000006Z"`, `"ended":"2026-01-02T02:04:06.000000006Z"`, `"wall_ms":1`} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s lacks %s", text, want)
		}
	}
	started := created.Add(time.Millisecond)
	if r := recorded(agent.Run{Created: created, Started: started}, outcome{}, started); !r.Started.Equal(started) {
		t.Errorf("started %v, not when the agent did, %v", r.Started, started)
	}
}

// TestConcludeKeepsWhatWasAskedFor: the record, the layer, or nothing.
func TestConcludeKeepsWhatWasAskedFor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct{ remove, layer bool }{
		"record": {}, "record and layer": {layer: true}, "nothing": {remove: true},
	} {
		t.Run(name, func(t *testing.T) {
			r := testRuntime(t)
			run, _ := deadRun(t, r, func(s *agent.Spec) { s.Remove = row.remove })
			apply(t, r, run, agent.EventStarted)
			record := recorded(run, outcome{exitKnown: true, code: 9}, time.Now())
			record.ID, record.Name, record.Command = run.Spec.ID, run.Spec.Name, run.Spec.Command
			if err := r.conclude(run, agent.EventRecorded, record, row.layer); err != nil {
				t.Fatal(err)
			}
			kept, err := r.Get(run.Spec.Name)
			if row.remove {
				if agent.KindOf(err) != agent.KindNotFound {
					t.Errorf("%+v, %v", kept, err)
				}
				return
			}
			if err != nil || kept.State != agent.StateEnded || kept.Record.ExitCode != 9 || kept.Lease != nil || (kept.Layer != "") != row.layer {
				t.Errorf("%+v, %v", kept, err)
			}
		})
	}
}

// TestWhatCannotBeTornDownIsLeftForTheNext: the next clove finds it, with the record.
func TestWhatCannotBeTornDownIsLeftForTheNext(t *testing.T) {
	t.Parallel()
	r := testRuntime(t)
	spec := testSpec()
	dir, err := newRunDirectory(r.paths, spec.ID)
	if err != nil {
		t.Fatal(err)
	}
	l := &launch{runtime: r, spec: spec, dir: dir}
	err = l.leave(agent.Record{ExitCode: 4}, unix.EBUSY)
	var failure *agent.Error
	if !errors.As(err, &failure) || !errors.Is(err, unix.EBUSY) || failure.Hint == "" || !strings.Contains(err.Error(), spec.Name) {
		t.Errorf("%v", err)
	}
	text, err := os.ReadFile(filepath.Join(dir.path, recordFile))
	if err != nil || !strings.Contains(string(text), `"exit_code":4`) {
		t.Errorf("the record: %s, %v", text, err)
	}
	if r.supervised(spec.ID) {
		t.Error("it still counts as supervised, so it could never be cleaned")
	}
}

// The log's writer is notified that the output is complete before the end is stored. It is not
// notified if our end of the streams may still be in use.
func TestTheOutputIsWholeBeforeTheEndIsStored(t *testing.T) {
	t.Parallel()
	for _, occupied := range []bool{false, true} {
		r := testRuntime(t)
		run, path := deadRun(t, r, nil)
		apply(t, r, run, agent.EventStarted)
		lock, err := lockIn(path)
		if err != nil {
			t.Fatal(err)
		}
		var states []agent.State
		l := &launch{runtime: r, spec: run.Spec, run: run, probes: &probes{cgroups: &cgroups.Host{}}, dir: &runDirectory{path: path, lock: lock},
			occupied: occupied, trace: newTrace(IO{})}
		l.streams.Drained = func() {
			now, err := r.Get(run.Spec.Name)
			if err != nil {
				t.Error(err)
			}
			states = append(states, now.State)
		}
		if _, err := l.finish(outcome{exitKnown: true}, &signals{}); err != nil {
			t.Fatal(err)
		}
		if now, err := r.Get(run.Spec.Name); err != nil || now.State != agent.StateEnded {
			t.Errorf("control: %s, %v", now.State, err)
		}
		if want := map[bool]string{false: "[running]", true: "[]"}[occupied]; fmt.Sprint(states) != want {
			t.Errorf("occupied %v: it was reported while the run was %v, want %s", occupied, states, want)
		}
	}
}

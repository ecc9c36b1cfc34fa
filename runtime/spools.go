package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
)

// Spools is the directory of spools, which are named by the run and a number.
type Spools string

// Spools is the directory of an installation.
func (p Paths) Spools() Spools { return Spools(filepath.Join(p.State, "spools")) }

// New names the next spool of a run, and makes the directory. The files of a spool that is there when
// the run starts are put into its sandbox before its agent executes.
func (s Spools) New(id agent.ID, number int) (string, error) {
	return s.name(id, number), os.MkdirAll(string(s), 0o700)
}

func (s Spools) name(id agent.ID, number int) string {
	return filepath.Join(string(s), fmt.Sprintf("%s.%d.tar", id, number))
}

// Give keeps what a run reads from its standard input, until it starts: some bytes, and behind them a file of the same
// file system, which takes no more room; empty: none.
func (s Spools) Give(id agent.ID, input []byte, file string) error {
	err := os.MkdirAll(string(s), 0o700)
	if err == nil && file != "" {
		err = errors.Join(absentIsFine(os.Remove(s.content(id))), os.Link(file, s.content(id)))
	}
	if err == nil {
		err = atomicfile.Write(s.input(id), 0o600, input)
	}
	return agent.Failed("spool", err)
}

func (s Spools) input(id agent.ID) string { return filepath.Join(string(s), string(id)+".stdin") }

func (s Spools) content(id agent.ID) string { return filepath.Join(string(s), string(id)+".content") }

// Given is what Give has kept for a run; nil and empty: nothing.
func (s Spools) Given(id agent.ID) (input []byte, file string, err error) {
	input, err = os.ReadFile(s.input(id))
	if exists(s.content(id)) {
		file = s.content(id)
	}
	return input, file, absentIsFine(err)
}

// of lists the spools of a run, in their order.
func (s Spools) of(id agent.ID) (all []string) {
	for n := 0; exists(s.name(id, n)); n++ {
		all = append(all, s.name(id, n))
	}
	return all
}

// Drop removes the spools of a run.
func (s Spools) Drop(id agent.ID) error {
	return agent.Failed("spool", s.remove(func(of agent.ID) bool { return of == id }))
}

// Sweep removes the spools of all runs but those for which waits holds.
func (s Spools) Sweep(waits func(agent.ID) bool) error {
	return s.remove(func(of agent.ID) bool { return !waits(of) })
}

func (s Spools) remove(these func(agent.ID) bool) error {
	var failures []error
	for _, name := range entriesOf(string(s)) {
		if id, _, _ := strings.Cut(name, "."); these(agent.ID(id)) {
			failures = append(failures, absentIsFine(os.Remove(filepath.Join(string(s), name))))
		}
	}
	return errors.Join(failures...)
}

// spoolRuns are the runs that spools are named by.
func spoolRuns(spools []string) (ids []string) {
	for _, name := range spools {
		id, _, _ := strings.Cut(name, ".")
		ids = append(ids, id)
	}
	return ids
}

// unclaimedAge is longer than a copy takes until its run is queued.
const unclaimedAge = time.Hour

// orphans are the spools of runs that have started; one that has not may be started again. A spool without a run may belong to a child
// that cloved is about to queue, which only kernel.db says: an old one is a note, and cloved's to remove.
func (s Spools) orphans(spools []string, runs []agent.Run, now time.Time) (over, unclaimed []Problem) {
	for i, id := range spoolRuns(spools) {
		at := slices.IndexFunc(runs, func(run agent.Run) bool { return string(run.Spec.ID) == id })
		if at >= 0 && !runs[at].Started.IsZero() {
			over = append(over, Problem{Kind: ProblemSpool, Subject: spools[i], Message: "the run for which these files were copied has started"})
		}
		if info, err := os.Stat(filepath.Join(string(s), spools[i])); at < 0 && err == nil && now.Sub(info.ModTime()) > unclaimedAge {
			unclaimed = append(unclaimed, Problem{Kind: ProblemSpool, Subject: spools[i], Message: "files for a run that is not there; cloved uses or removes them when it starts", Note: true})
		}
	}
	return over, unclaimed
}

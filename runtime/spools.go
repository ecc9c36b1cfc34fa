package runtime

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"clove.run/clove/agent"
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

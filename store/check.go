package store

import (
	"fmt"
	"maps"
	"slices"

	"go.etcd.io/bbolt"

	"clove.run/clove/agent"
)

// Check returns everything in the file that should not be, in words; nothing
// when it is sound. The error says that the file could not be read at all.
func (s *Store) Check() ([]string, error) {
	var problems []string
	err := s.view(func(t *tables) error {
		a := &audit{tables: t, problems: s.format.problems(t.tx), byName: map[string]agent.ID{}, byRange: map[int]agent.ID{}}
		a.everyRun()
		a.everyName()
		a.everyLease()
		a.everyEvent()
		problems = append(a.problems, pageProblems(t.tx)...)
		return nil
	})
	return problems, err
}

// audit collects what Check finds in one transaction. byName and byRange are
// what the runs say, to hold the indexes against.
type audit struct {
	*tables
	byName   map[string]agent.ID
	byRange  map[int]agent.ID
	problems []string
}

func (a *audit) problem(format string, arguments ...any) {
	a.problems = append(a.problems, fmt.Sprintf(format, arguments...))
}

// problems checks that the file has this build's version and no bucket besides its own and
// those that another clove has noted: another one would be copied for ever, into every backup
// too. A version that differs means that the migration at Open did not do what it should.
func (f format) problems(tx *bbolt.Tx) (problems []string) {
	if version, err := f.schemaOf(tx); err != nil || version != f.newest() {
		problems = append(problems, fmt.Sprintf("schema: %d is not %d (%v)", version, f.newest(), err))
	}
	for name := range each(tx.Cursor()) {
		if !f.declares(name) && !noted(tx, name) {
			problems = append(problems, fmt.Sprintf("schema: bucket %q is not part of it", name))
		}
	}
	return problems
}

// pageProblems is bbolt's own check. It comes last: it reads in a goroutine of its
// own, where a page that cannot be read would end the process, and the checks
// before it have found such pages.
func pageProblems(tx *bbolt.Tx) (problems []string) {
	for err := range tx.Check() {
		problems = append(problems, fmt.Sprintf("pages: %v", err))
	}
	return problems
}

// everyRun decodes each run and applies the rules to it. A run that cannot be decoded
// is one problem, and the others are still checked.
func (a *audit) everyRun() {
	for key, value := range each(a.runs.Cursor()) {
		run, err := decode(key, value)
		if err != nil {
			a.problem("run %q: %v", key, err)
			continue
		}
		if id := agent.ID(key); !id.Valid() || run.Spec.ID != id {
			a.problem("run %q: says that it is %q", key, run.Spec.ID)
		}
		for _, rule := range rules {
			if !rule.holds(run) {
				a.problem("run %q: %s (state %q)", key, rule.broken, run.State)
			}
		}
		a.expect(run)
	}
}

// rules are the invariants of one run by itself, which each method that writes keeps. A row
// here is what the next start, gc or rm relies on without a check of its own.
var rules = []struct {
	broken string
	holds  func(*agent.Run) bool
}{
	{"its state is not one", func(r *agent.Run) bool { return slices.Contains(agent.States, r.State) }},
	{"its name is not valid", func(r *agent.Run) bool {
		if r.Container != nil {
			return r.Spec.Name == r.Container.Name() || r.Spec.Name == r.Container.LongName()
		}
		return agent.ValidateName(r.Spec.Name) == nil
	}},
	{"a container's record is all that there is of it", func(r *agent.Run) bool {
		return r.Container == nil || r.State == agent.StateEnded && r.Layer == "" && r.Spec.ID == r.Container.RunID()
	}},
	{"it has no time of creation", func(r *agent.Run) bool { return !r.Created.IsZero() }},
	{"a lease belongs to a run that starts or runs, and to each of them", func(r *agent.Run) bool {
		return (r.Lease != nil) == (r.State == agent.StateStarting || r.State == agent.StateRunning)
	}},
	{"a record belongs to an ended run, and to each of them", func(r *agent.Run) bool {
		return (r.Record != nil) == (r.State == agent.StateEnded)
	}},
	{"its record is not its own", func(r *agent.Run) bool {
		return r.Record == nil || wrongRecord(r.Spec, *r.Record) == ""
	}},
	{"its id range is out of bounds", func(r *agent.Run) bool {
		return r.Lease == nil || r.Lease.IDRange >= 0 && r.Lease.IDRange < agent.IDRanges
	}},
	{"it ended, or waits, and has a process", func(r *agent.Run) bool {
		return r.PID == 0 || r.State != agent.StateEnded && r.State != agent.StateQueued
	}},
}

// expect collects the entries that the indexes should have for run.
func (a *audit) expect(run *agent.Run) {
	name := run.Name().String()
	if other, taken := a.byName[name]; taken {
		a.problem("run %q: its name %q is also that of %q", run.Spec.ID, name, other)
	}
	a.byName[name] = run.Spec.ID
	if run.Lease == nil {
		return
	}
	if other, taken := a.byRange[run.Lease.IDRange]; taken {
		a.problem("run %q: its id range %d is also that of %q", run.Spec.ID, run.Lease.IDRange, other)
	}
	a.byRange[run.Lease.IDRange] = run.Spec.ID
}

// everyName holds the index of names against the runs, both ways: an entry too
// many blocks a name for ever, one too few lets two runs have it.
func (a *audit) everyName() {
	for key, id := range each(a.names.Cursor()) {
		if run, ok := a.byName[string(key)]; !ok || run != agent.ID(id) {
			a.problem("name %q: the index says %q, the runs say %q", key, id, run)
		}
		delete(a.byName, string(key))
	}
	for _, name := range slices.Sorted(maps.Keys(a.byName)) {
		a.problem("name %q: the index lacks it, run %q has it", name, a.byName[name])
	}
}

// everyLease does the same for id ranges. An entry too few is the worse fault: two
// agents would have the same host ids, and could signal each other.
func (a *audit) everyLease() {
	for key, id := range each(a.leases.Cursor()) {
		index, isRange := rangeOf(key)
		if run, ok := a.byRange[index]; !ok || !isRange || run != agent.ID(id) {
			a.problem("lease %x: the index says %q, the runs say %q", key, id, run)
		}
		delete(a.byRange, index)
	}
	for _, index := range slices.Sorted(maps.Keys(a.byRange)) {
		a.problem("lease %d: the index lacks it, run %q has it", index, a.byRange[index])
	}
}

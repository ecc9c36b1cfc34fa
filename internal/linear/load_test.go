package linear

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// desk is a system of one lock and one map.
type desk struct {
	mu   sync.Mutex // guards runs
	runs map[string]agent.Run
	// forgetful desks answer that a run is gone before it is.
	forgetful bool
	late      sync.WaitGroup
}

var (
	taken    = &agent.Error{Kind: agent.KindConflict, Step: "name", Message: "taken"}
	conflict = &agent.Error{Kind: agent.KindConflict, Message: "its state forbids it"}
	noRun    = &agent.Error{Kind: agent.KindNotFound, Message: "there is none"}
)

func (d *desk) Create(_ context.Context, spec agent.Spec) (agent.Run, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if _, there := d.runs[spec.Name]; there {
		return agent.Run{}, taken
	}
	d.runs[spec.Name] = agent.Run{Spec: spec, State: agent.StateRunning}
	return d.runs[spec.Name], nil
}

func (d *desk) Get(_ context.Context, name string) (agent.Run, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.runs[name], d.wants(name, "")
}

// wants is the error for a name whose run is not in the state; "" means any state.
func (d *desk) wants(name string, state agent.State) error {
	run, there := d.runs[name]
	switch {
	case !there:
		return noRun
	case state != "" && run.State != state:
		return conflict
	}
	return nil
}

func (d *desk) Kill(_ context.Context, name string) error { return d.end(name, agent.StateRunning) }
func (d *desk) Stop(_ context.Context, name string) error { return d.end(name, "") }
func (d *desk) end(name string, from agent.State) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.wants(name, from)
	if err == nil {
		run := d.runs[name]
		run.State = agent.StateEnded
		d.runs[name] = run
	}
	return err
}

func (d *desk) Exec(_ context.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.wants(name, agent.StateRunning)
}

func (d *desk) Rename(_ context.Context, from, to string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.wants(from, agent.StateEnded)
	if _, there := d.runs[to]; there && err == nil {
		err = taken
	}
	if err == nil {
		run := d.runs[from]
		run.Spec.Name = to
		d.runs[to] = run
		delete(d.runs, from)
	}
	return err
}

func (d *desk) Remove(_ context.Context, name string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	err := d.wants(name, agent.StateEnded)
	if err != nil {
		return err
	}
	if !d.forgetful {
		delete(d.runs, name)
		return nil
	}
	d.late.Go(func() {
		d.mu.Lock()
		defer d.mu.Unlock()
		if d.wants(name, agent.StateEnded) == nil {
			delete(d.runs, name)
		}
	})
	return nil
}

var small = Load{Workers: 8, Operations: 4000, Groups: 2, Spec: func(name string) agent.Spec { return agent.Spec{ID: agent.NewID(), Name: name} }}

func TestOneDeskHasOneOrder(t *testing.T) {
	t.Parallel()
	history, err := small.Run(t.Context(), &desk{runs: map[string]agent.Run{}})
	if err != nil {
		t.Fatal(err)
	}
	asked := map[Op]int{}
	for _, o := range history {
		asked[o.Input.(Input).Op]++
	}
	for _, op := range []Op{OpCreate, OpCreated, OpGet, OpKill, OpStop, OpExec, OpRename, OpRemove} {
		if asked[op] == 0 {
			t.Errorf("no operation was %s", op)
		}
	}
	if err := Check(history, time.Minute); err != nil {
		t.Error(err)
	}
}

// A desk that answers before it has made the change is detected, and the report says where.
func TestAForgetfulDeskIsFoundOut(t *testing.T) {
	t.Parallel()
	d := &desk{runs: map[string]agent.Run{}, forgetful: true}
	history, err := small.Run(t.Context(), d)
	d.late.Wait()
	if err != nil {
		t.Fatal(err)
	}
	if err := Check(history, time.Minute); err == nil || !strings.Contains(err.Error(), "open") {
		t.Errorf("%v", err)
	}
}

func TestAnUnknownAnswerFails(t *testing.T) {
	t.Parallel()
	l := small
	l.Operations = 64
	_, err := l.Run(t.Context(), broken{&desk{runs: map[string]agent.Run{}}})
	if !errors.Is(err, errBroken) {
		t.Errorf("%v", err)
	}
}

var errBroken = errors.New("broken")

type broken struct{ *desk }

func (broken) Create(context.Context, agent.Spec) (agent.Run, error) { return agent.Run{}, errBroken }

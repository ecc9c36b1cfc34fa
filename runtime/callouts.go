package runtime

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/cgroups"
	"clove.run/clove/internal/callout"
)

// BudgetEvent is what --on-warn and --on-end get as JSON.
type BudgetEvent struct {
	Event     string     `json:"event"` // one of the constants below
	ID        agent.ID   `json:"id"`
	Name      string     `json:"name"`
	Owner     uint32     `json:"owner"`
	Namespace string     `json:"namespace,omitempty"`
	Budget    api.Budget `json:"budget"`
}

// The events of budgets.
const (
	eventWarning = "budget-warning" // it reached its warning
	eventEnd     = "budget-end"     // nothing is left: what at_end says follows
)

// calloutsMost bounds the callouts of a run that wait or are under way.
const calloutsMost = 16

// callouts does what a run's owner wants done when a budget reaches its mark: one at a time,
// beside the supervisor's loop. They outlive the agent.
type callouts struct {
	spec   agent.Spec
	owner  agent.Owner
	failed func(flag string, err error) // may be nil
	place  func() (commandPlace, error) // makes the cgroups of a command
	gone   func() bool                  // a person has removed the run
	limits []agent.Rlimit               // of a command
	ctx    context.Context
	cancel context.CancelFunc
	ended  map[budgetEnd]bool // the loop's: ends that were reported

	mu        sync.Mutex      // guards the two below
	questions map[string]bool // that were given to --on-ask, by id
	over      bool            // no more begin

	turn    sync.Mutex // held by the one that is under way
	waiting chan struct{}
	all     sync.WaitGroup
}

// budgetEnd distinguishes the ends of budgets: one is reported once.
type budgetEnd struct {
	account, dimension string
	granted            int64
	since              time.Time
}

// errCalloutsMost drops a callout.
var errCalloutsMost = errors.New("it is left out: too many wait already")

func newCallouts(spec agent.Spec, streams IO, commands func() (commandPlace, error), removed func() bool) *callouts {
	c := &callouts{spec: spec, owner: streams.Owner, failed: streams.CalloutFailed, place: commands, gone: removed,
		limits: streams.CallerRlimits, ended: map[budgetEnd]bool{}, questions: map[string]bool{}, waiting: make(chan struct{}, calloutsMost)}
	c.ctx, c.cancel = context.WithCancel(context.Background())
	return c
}

// warned is for a budget that reached its warning.
func (c *callouts) warned(b api.Budget) { c.begin("--on-warn", c.spec.Kernel.OnWarn, eventWarning, b) }

// spent gets all budgets of which nothing is left, after each change.
func (c *callouts) spent(all []api.Budget) {
	now := map[budgetEnd]bool{}
	for _, b := range all {
		end := budgetEnd{b.Account, b.Dimension, *b.Granted, b.Since}
		if now[end] = true; !c.ended[end] {
			c.begin("--on-end", c.spec.Kernel.OnEnd, eventEnd, b)
		}
	}
	c.ended = now
}

func (c *callouts) begin(flag, target, event string, b api.Budget) {
	if target == "" {
		return
	}
	call := callout.Callout{Target: target, Owner: c.owner, Env: environmentOf(event, c.spec, b),
		Event: BudgetEvent{Event: event, ID: c.spec.ID, Name: c.spec.Name, Owner: c.owner.UID, Namespace: c.spec.Kernel.Namespace, Budget: b}}
	c.enter(flag, func() error {
		return c.do(call, func(call callout.Callout) error { return call.Do(c.ctx) })
	})
}

// enter has one done in its turn.
func (c *callouts) enter(flag string, do func() error) {
	select {
	case c.waiting <- struct{}{}:
	default:
		c.report(flag, errCalloutsMost)
		return
	}
	c.all.Go(func() {
		c.turn.Lock()
		defer c.turn.Unlock()
		if err := do(); err != nil {
			c.report(flag, err)
		}
		<-c.waiting
	})
}

// do ends with no process of a command's left. The place is made before the run is looked for:
// a removal looks for places after it has removed the run, so one of both sees the other.
func (c *callouts) do(call callout.Callout, with func(callout.Callout) error) (err error) {
	if !agent.IsURL(call.Target) {
		place, err := c.place()
		if err != nil {
			return fmt.Errorf("it is left out: %w", err)
		}
		defer func() { err = errors.Join(err, endPlace(place)) }()
		call.Within = callout.Within{Cgroups: place.Dirs(), Rlimits: c.limits}
	}
	if c.gone() {
		return nil
	}
	return with(call)
}

func (c *callouts) report(flag string, err error) {
	if c.failed != nil {
		c.failed(flag, err)
	}
}

// environmentOf is the event as variables, for a command without a JSON parser. None is from
// an agent: names are checked first.
func environmentOf(event string, spec agent.Spec, b api.Budget) []string {
	return append(environmentOfRun(event, spec),
		"CLOVE_ACCOUNT="+b.Account, "CLOVE_DIMENSION="+b.Dimension, "CLOVE_USED="+strconv.FormatInt(b.Used, 10),
		"CLOVE_GRANTED="+strconv.FormatInt(*b.Granted, 10), "CLOVE_AT_END="+b.AtEnd)
}

func environmentOfRun(event string, spec agent.Spec) []string {
	return []string{"CLOVE_EVENT=" + event, "CLOVE_ID=" + string(spec.ID), "CLOVE_NAME=" + spec.Name, "CLOVE_NAMESPACE=" + spec.Kernel.Namespace}
}

// finish waits for those under way, for at most the time that one may take, or ends them where
// a person ended a run that is removed with its end. nil has none.
func (c *callouts) finish(seen outcome) {
	if c == nil {
		return
	}
	c.mu.Lock()
	c.over = true
	c.mu.Unlock()
	patience := callout.Patience
	if c.spec.Remove && seen.cause == causeUser {
		patience = 0
	}
	timer := time.AfterFunc(patience, c.cancel)
	c.all.Wait()
	timer.Stop()
	c.cancel()
}

// Bounds of all commands of one user together.
const (
	commandsMemoryBytes = 256 << 20
	commandsPids        = 128
)

// commandPlace is where a command runs.
type commandPlace interface {
	Dirs() []string
	End(ctx context.Context) error
}

func endPlace(p commandPlace) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	return p.End(ctx)
}

// commands makes the cgroups of one command of a run.
func (r *site) commands(h *cgroups.Host, uid uint32, id agent.ID) (commandPlace, error) {
	made, err := h.MakeCommands(uid, r.cgroupName(id), commandsMemoryBytes, commandsPids)
	if err != nil {
		return nil, err
	}
	return made, nil
}

// removed reports whether a run was removed. One that is removed with its own end still has
// its commands.
func (r *site) removed(spec agent.Spec) bool {
	if spec.Remove {
		return false
	}
	_, err := r.Get(string(spec.ID))
	return agent.KindOf(err) == agent.KindNotFound
}

// endCommands kills what a run's commands still run on the host.
func (r *reaper) endCommands(run agent.Run) error {
	if !run.Spec.Kernel.HasCommands() {
		return nil
	}
	h, err := detect()
	if err != nil {
		return err
	}
	return r.endCommandsOn(h, run.Spec.ID)
}

func (r *reaper) endCommandsOn(h *cgroups.Host, id agent.ID) error {
	ctx, cancel := context.WithTimeout(context.Background(), killTimeout)
	defer cancel()
	return agent.Failed("end commands", h.EndCommands(ctx, r.cgroupName(id)))
}

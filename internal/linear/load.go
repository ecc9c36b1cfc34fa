package linear

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"time"

	"github.com/anishathalye/porcupine"

	"clove.run/clove/agent"
)

// System is what Load calls. Cloved implements it with a *client.Client.
type System interface {
	Create(ctx context.Context, spec agent.Spec) (agent.Run, error)
	Get(ctx context.Context, name string) (agent.Run, error)
	Kill(ctx context.Context, name string) error
	Stop(ctx context.Context, name string) error
	Exec(ctx context.Context, name string) error
	Rename(ctx context.Context, from, to string) error
	Remove(ctx context.Context, name string) error
}

// Load says how many operations are called, and on what.
type Load struct {
	Workers    int
	Operations int                          // of all workers together
	Groups     int                          // of names; each worker uses one. Fewer groups mean more conflicts and a longer search for an order
	Prefix     string                       // of the names; a system that is used again needs another
	Spec       func(name string) agent.Spec // a complete one, with a new ID
	Seed       uint64
}

// mix is the relative frequency of each operation.
var mix = []struct {
	op     Op
	weight int
}{{OpCreate, 30}, {OpGet, 20}, {OpRemove, 18}, {OpKill, 12}, {OpStop, 6}, {OpExec, 8}, {OpRename, 6}}

// Run calls the operations, and returns their answers and times. An answer that the
// contract does not allow for the operation is an error.
func (l Load) Run(ctx context.Context, system System) ([]porcupine.Operation, error) {
	began := time.Now()
	var (
		mu      sync.Mutex // guards history and failed
		history []porcupine.Operation
		failed  error
		all     sync.WaitGroup
	)
	ctx, giveUp := context.WithCancel(ctx)
	defer giveUp()
	for worker := range l.Workers {
		all.Go(func() {
			// A worker's questions depend on the seed alone; how they interleave does not.
			dice := rand.New(rand.NewPCG(l.Seed, uint64(worker)))
			share := l.Operations / l.Workers
			if worker < l.Operations%l.Workers {
				share++
			}
			for range share {
				called := time.Since(began)
				answered, err := l.ask(ctx, system, dice, worker%l.Groups)
				returned := time.Since(began)
				mu.Lock()
				if err != nil && failed == nil { // later errors only come from the cancellation
					failed = err
					giveUp()
				}
				for _, o := range answered {
					o.ClientId, o.Call, o.Return = worker, int64(called), int64(returned)
					history = append(history, o)
				}
				mu.Unlock()
				if err != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return history, failed
}

// name is one name of a group.
func (l Load) name(group, index int) string {
	return fmt.Sprintf("%spair%d-%c", l.Prefix, group, 'a'+index)
}

// ask calls one operation, and returns it in the parts that the model judges. All parts
// have the times of the whole.
func (l Load) ask(ctx context.Context, system System, dice *rand.Rand, group int) ([]porcupine.Operation, error) {
	in := Input{Op: roll(dice), Group: group, Name: dice.IntN(Pair)}
	name := l.name(in.Group, in.Name)
	var out Output
	var err error
	switch in.Op {
	case OpCreate:
		return l.create(ctx, system, in)
	case OpGet:
		var run agent.Run
		if run, err = system.Get(ctx, name); err == nil {
			out = l.show(run, in.Group)
		}
	case OpKill:
		err = system.Kill(ctx, name)
	case OpStop:
		err = system.Stop(ctx, name)
	case OpExec:
		err = system.Exec(ctx, name)
	case OpRename:
		in.To = 1 - in.Name
		err = system.Rename(ctx, name, l.name(in.Group, in.To))
	case OpRemove:
		err = system.Remove(ctx, name)
	}
	if out.Answer, err = answerOf(err); err != nil {
		return nil, fmt.Errorf("%s %s: %w", in.Op, name, err)
	}
	whole := []porcupine.Operation{{Input: in, Output: out}}
	before := map[Op]Op{OpRemove: OpEndQueued, OpStop: OpMarkStopped}
	if first, two := before[in.Op]; two && out.Answer != Conflict {
		in.Op = first
		whole = append(whole, porcupine.Operation{Input: in, Output: Output{Answer: OK}})
	}
	return whole, nil
}

// create distinguishes a name that was taken from a run that others ended or removed before
// it ran: in the second case the run existed.
func (l Load) create(ctx context.Context, system System, in Input) ([]porcupine.Operation, error) {
	spec := l.Spec(l.name(in.Group, in.Name))
	in.ID = spec.ID
	run, err := system.Create(ctx, spec)
	if err == nil {
		shown := in
		shown.Op = OpCreated
		return []porcupine.Operation{{Input: in, Output: Output{Answer: OK}}, {Input: shown, Output: l.show(run, in.Group)}}, nil
	}
	made := !isNameTaken(err)
	out := Output{Answer: Conflict}
	if _, err = answerOf(err); err != nil {
		return nil, fmt.Errorf("create %s: %w", spec.Name, err)
	}
	if made {
		out.Answer = OK
	}
	return []porcupine.Operation{{Input: in, Output: out}}, nil
}

// isNameTaken reports that the store refused the name, and so never had the run.
func isNameTaken(err error) bool {
	var known *agent.Error
	return errors.As(err, &known) && known.Kind == agent.KindConflict && known.Step == "name"
}

// answerOf translates an error to an answer that the model knows, and returns any other error.
func answerOf(err error) (Answer, error) {
	switch {
	case err == nil:
		return OK, nil
	case agent.KindOf(err) == agent.KindNotFound:
		return NotFound, nil
	case agent.KindOf(err) == agent.KindConflict:
		return Conflict, nil
	}
	return "", err
}

// show is what an answer says about a run. A name outside of the pair has the index -1.
func (l Load) show(run agent.Run, group int) Output {
	out := Output{Answer: OK, ID: run.Spec.ID, State: run.State, Name: -1}
	for index := range Pair {
		if run.Spec.Name == l.name(group, index) {
			out.Name = index
		}
	}
	return out
}

// roll chooses an operation by the weights of mix.
func roll(dice *rand.Rand) Op {
	total := 0
	for _, m := range mix {
		total += m.weight
	}
	at := dice.IntN(total)
	for _, m := range mix {
		if at -= m.weight; at < 0 {
			return m.op
		}
	}
	return OpGet
}

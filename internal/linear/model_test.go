package linear

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"

	"clove.run/clove/agent"
)

// at places an operation in time; operations that follow each other do not overlap.
func at(call, ret int64, in Input, out Output) porcupine.Operation {
	return porcupine.Operation{Input: in, Output: out, Call: call, Return: ret}
}

func made(call, ret int64, id agent.ID) porcupine.Operation {
	return at(call, ret, Input{Op: OpCreate, ID: id}, Output{Answer: OK})
}

func seen(call, ret int64, name int, id agent.ID, state agent.State) porcupine.Operation {
	return at(call, ret, Input{Op: OpGet, Name: name}, Output{Answer: OK, ID: id, Name: name, State: state})
}

func said(call, ret int64, op Op, v Answer) porcupine.Operation {
	return at(call, ret, Input{Op: op}, Output{Answer: v})
}

func TestModel(t *testing.T) {
	t.Parallel()
	moved := at(5, 6, Input{Op: OpRename, To: 1}, Output{Answer: OK})
	for name, c := range map[string]struct {
		history []porcupine.Operation
		legal   bool
	}{
		"life":              {[]porcupine.Operation{made(1, 2, "a"), seen(3, 4, 0, "a", agent.StateRunning), said(5, 6, OpKill, OK), seen(7, 8, 0, "a", agent.StateRunning), seen(9, 10, 0, "a", agent.StateEnded), said(11, 12, OpRemove, OK), said(13, 14, OpGet, NotFound)}, true},
		"end by itself":     {[]porcupine.Operation{made(1, 2, "a"), seen(3, 4, 0, "a", agent.StateEnded)}, false},
		"back to life":      {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpStop, OK), seen(5, 6, 0, "a", agent.StateRunning)}, false},
		"back to the queue": {[]porcupine.Operation{made(1, 2, "a"), seen(3, 4, 0, "a", agent.StateRunning), seen(5, 6, 0, "a", agent.StateQueued)}, false},
		"two of a name":     {[]porcupine.Operation{made(1, 2, "a"), made(3, 4, "b")}, false},
		"two at once":       {[]porcupine.Operation{made(1, 4, "a"), made(2, 3, "b"), said(2, 3, OpStop, OK), said(2, 3, OpRemove, OK)}, true},
		"lost":              {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpGet, NotFound)}, false},
		"remove of a live":  {[]porcupine.Operation{made(1, 2, "a"), seen(3, 4, 0, "a", agent.StateRunning), said(5, 6, OpRemove, OK)}, false},
		"exec during a stop": {[]porcupine.Operation{made(1, 2, "a"), said(3, 9, OpMarkStopped, OK), said(3, 9, OpStop, OK), said(4, 5, OpExec, OK),
			said(6, 7, OpExec, Conflict), seen(7, 8, 0, "a", agent.StateRunning)}, true},
		"exec without a stop": {[]porcupine.Operation{made(1, 2, "a"), said(4, 5, OpExec, OK), said(6, 7, OpExec, Conflict), seen(7, 8, 0, "a", agent.StateRunning)}, false},
		"remove of a waiting": {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpEndQueued, OK), said(3, 4, OpRemove, OK)}, true},
		"still there":         {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpStop, OK), said(5, 6, OpRemove, OK), seen(7, 8, 0, "a", agent.StateEnded)}, false},
		"no reason":           {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpStop, OK), said(5, 6, OpRemove, Conflict)}, false},
		"exec in an ended":    {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpStop, OK), said(5, 6, OpExec, OK)}, false},
		"exec in a running":   {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpExec, OK), said(5, 6, OpExec, Conflict)}, false},
		"free and taken":      {[]porcupine.Operation{said(1, 2, OpCreate, Conflict)}, false},
		"renamed":             {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpStop, OK), moved, said(7, 8, OpGet, NotFound), seen(9, 10, 1, "a", agent.StateEnded)}, true},
		"renamed alive":       {[]porcupine.Operation{made(1, 2, "a"), seen(3, 4, 0, "a", agent.StateRunning), moved}, false},
		"under both names":    {[]porcupine.Operation{made(1, 2, "a"), said(3, 4, OpStop, OK), moved, seen(7, 8, 0, "a", agent.StateEnded)}, false},
	} {
		if err := Check(c.history, time.Minute); (err == nil) != c.legal {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// The answer to a create shows the run's current state, under any of its names.
func TestModelOfACreatesAnswer(t *testing.T) {
	t.Parallel()
	shown := func(state agent.State) porcupine.Operation {
		return at(1, 4, Input{Op: OpCreated, ID: "a"}, Output{Answer: OK, ID: "a", State: state})
	}
	if err := Check([]porcupine.Operation{made(1, 4, "a"), seen(2, 3, 0, "a", agent.StateQueued), shown(agent.StateRunning)}, time.Minute); err != nil {
		t.Error(err)
	}
	if Check([]porcupine.Operation{made(1, 4, "a"), shown(agent.StateRunning), seen(5, 6, 0, "a", agent.StateStarting)}, time.Minute) == nil {
		t.Error("a run that was acknowledged as running went back")
	}
}

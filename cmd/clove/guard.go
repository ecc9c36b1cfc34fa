package main

import (
	"encoding/json"
	"os"
	"runtime/debug"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/lasting"
)

const guardName = "guard"

// guardCommand is started by cloved, once for each OCI container with network rules.
func guardCommand() command {
	return command{
		usage: "enforce the network rules of an OCI container; cloved starts it",
		verbs: []verb{{line: "clove guard", act: reaches(guard)}},
	}
}

// guard reads its order from one pipe and answers on another, as all processes that
// clove starts for a long time do (internal/lasting).
func guard(a *access, c *cli.Context) error {
	orders, pipe := os.NewFile(lasting.OrderFD, "order"), os.NewFile(lasting.AnswerFD, "answer")
	var order agent.Guard
	// One JSON object; a user that calls the command has no such descriptor.
	err := json.NewDecoder(orders).Decode(&order)
	orders.Close()
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: guardName, Message: "there is no order on descriptor 3", Err: err,
			Hint: "cloved starts this command: give a container's bundle network annotations"}
	}
	b, err := a.backend(c)
	held := false
	// The caller of cloved waits for exactly one answer: success once the rules are in
	// force, or the error. A later error is only returned.
	answer := func(a supervisor.Answer) {
		_ = json.NewEncoder(pipe).Encode(a) // cloved may be gone, which changes nothing
		pipe.Close()
	}
	if err == nil {
		err = b.Guard(c.Context, order, func() {
			held = true
			answer(supervisor.Answer{Started: true})
			debug.FreeOSMemory() // there is a guard for each container, and the start's memory is not needed again
		})
	}
	if err != nil && !held {
		answer(supervisor.Answer{Error: api.ErrorOf(err)})
	}
	return err
}

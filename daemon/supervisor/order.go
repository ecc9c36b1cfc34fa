package supervisor

import (
	"encoding/json"
	"fmt"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// SocketName is the supervisor's socket in the run directory.
const SocketName = "supervisor.sock"

// Order is what a supervisor is to do. It comes by a pipe and not by arguments: any user
// can read those in /proc, and the agent's environment may have secrets.
type Order struct {
	Spec  agent.Spec  `json:"spec"`
	Owner agent.Owner `json:"owner"` // whose rights host paths are opened with
	// Rlimits are of its commands on the host; none: the supervisor's own.
	Rlimits     []agent.Rlimit   `json:"rlimits,omitempty"`
	LogDir      string           `json:"log_dir"`           // made where it is not there
	LogCapBytes int64            `json:"log_cap_bytes"`     // of both files of the log together
	Socket      string           `json:"socket,omitempty"`  // cloved's, which answers for what agents share
	Metered     bool             `json:"metered,omitempty"` // an account above the run limits what the Linux kernel counts
	Size        *api.SessionSize `json:"size,omitempty"`    // of its terminal, where a caller waits for it
	Input       []byte           `json:"input,omitempty"`   // its standard input; nil: that of the spec
	Content     string           `json:"content,omitempty"` // a file that its standard input has behind Input; empty: none
}

// Step is a part of the launch, and when it was.
type Step struct {
	Name  string        `json:"name"`
	Began time.Time     `json:"began"`
	Took  time.Duration `json:"took_ns"`
}

// Answer is what became of the start.
type Answer struct {
	Started bool       `json:"started"` // true: the agent executes, and there is no Error
	Error   *api.Error `json:"error,omitempty"`
	Steps   []Step     `json:"steps,omitempty"` // of the launch, as far as it came
}

// ReadOrder reads the order from its pipe, and closes it.
func ReadOrder(pipe *os.File) (Order, error) {
	defer pipe.Close()
	var order Order
	if err := json.NewDecoder(pipe).Decode(&order); err != nil {
		return order, &agent.Error{Kind: agent.KindInvalid, Step: "supervise", Message: "there is no order on descriptor 3", Err: err,
			Hint: "cloved starts this command: use `clove run -d`"}
	}
	if !order.Spec.ID.Valid() {
		return order, &agent.Error{Kind: agent.KindInvalid, Step: "supervise", Message: fmt.Sprintf("%q is not an id", order.Spec.ID)}
	}
	return order, nil
}

// answer writes the one answer. cloved may be gone, which changes nothing.
func answer(pipe *os.File, a Answer) {
	_ = json.NewEncoder(pipe).Encode(a)
	pipe.Close()
}

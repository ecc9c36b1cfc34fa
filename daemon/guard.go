package daemon

import (
	"fmt"
	"log/slog"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/supervisor"
)

// guards start the processes that enforce the network rules of OCI containers. It is an
// interface so that the handler is tested without a process.
type guards interface {
	guard(order agent.Guard) (supervisor.Answer, error)
}

// containers serves the methods that clove-oci calls for OCI containers.
type containers struct {
	guards  guards
	records records
	log     *slog.Logger
}

func (o containers) methods() []handler {
	return []handler{on(methods.Guard, o.startGuard), on(methods.Container, o.record)}
}

// startGuard answers when the rules are enforced, or cannot be.
func (o containers) startGuard(c *request, p api.GuardParams) (api.Nothing, error) {
	if p.Guard.PID <= 0 || !filepath.IsAbs(p.Guard.Directory) {
		return api.Nothing{}, api.Failure(api.CodeParams, "clove-oci asks for it", "a guard needs a container's process and an absolute directory")
	}
	answer, err := o.guards.guard(p.Guard)
	if err != nil {
		return api.Nothing{}, err
	}
	if answer.Error != nil {
		return api.Nothing{}, answer.Error
	}
	o.log.Info("a container's network is guarded", "directory", p.Guard.Directory, "mode", p.Guard.Network, "rules", len(p.Guard.Rules))
	return api.Nothing{}, nil
}

// guard starts one, which outlives this cloved as a supervisor does.
func (p processes) guard(order agent.Guard) (answer supervisor.Answer, err error) {
	path := filepath.Join(order.Directory, agent.GuardLogFile)
	log, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_APPEND|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return answer, fmt.Errorf("cannot write a guard's log: %w", err)
	}
	defer log.Close()
	_, err = p.ask(log, "guard", "guard", order, &answer)
	return answer, err
}

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// Connect reaches the supervisor of a run. KindConflict says that there is none.
func Connect(ctx context.Context, runDir string, id agent.ID) (*rpc.Conn, error) {
	conn, err := rpc.Dial(ctx, filepath.Join(runDir, string(id), SocketName))
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED) {
		return nil, &agent.Error{Kind: agent.KindConflict, Message: "the run has no supervisor that can be reached",
			Hint: "it has ended, or runs in the foreground; `clove ps -a` shows it"}
	}
	return conn, agent.Failed("supervisor", err)
}

// Call asks the supervisor of a run once.
func Call(ctx context.Context, runDir string, id agent.ID, method string, params, result any) error {
	conn, err := Connect(ctx, runDir, id)
	if err != nil {
		return err
	}
	defer conn.Close()
	if err := conn.Request(method, params); err != nil {
		return agent.Failed("supervisor", err)
	}
	err = conn.Answer(ctx, result, nil, func(text json.RawMessage) error { return api.ParseError(text) })
	if errors.Is(err, rpc.ErrGone) {
		return &agent.Error{Kind: agent.KindConflict, Message: "the run ended meanwhile", Hint: "`clove ps -a` shows how"}
	}
	return err
}

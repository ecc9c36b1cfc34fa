package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/internal/watch"
)

// patience is how long a run that executes may take to be reachable, and one
// that has ended to say so: its supervisor does both in a moment.
const patience = 2 * time.Second

// Connect reaches the supervisor of a run. KindConflict says that there is
// none. A run is known to execute a moment before its supervisor listens.
func Connect(ctx context.Context, runDir string, id agent.ID) (*rpc.Conn, error) {
	conn, err := dial(ctx, runDir, id)
	if !absent(err) {
		return conn, agent.Failed("supervisor", err)
	}
	none := &agent.Error{Kind: agent.KindConflict, Message: "the run has no supervisor that can be reached",
		Hint: "it has ended, or runs in the foreground; `clove ps -a` shows it"}
	written, err := watch.Dir(filepath.Join(runDir, string(id)))
	if err != nil {
		return nil, none // not even a directory
	}
	defer written.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		if conn, err = dial(ctx, runDir, id); !absent(err) {
			return conn, agent.Failed("supervisor", err)
		}
		select {
		case <-written.Changed:
		case <-ctx.Done():
			return nil, none
		}
	}
}

func dial(ctx context.Context, runDir string, id agent.ID) (*rpc.Conn, error) {
	return rpc.Dial(ctx, filepath.Join(runDir, string(id), SocketName))
}

func absent(err error) bool {
	return errors.Is(err, fs.ErrNotExist) || errors.Is(err, unix.ECONNREFUSED)
}

// Call asks the supervisor of a run once.
func Call(ctx context.Context, runDir string, id agent.ID, method string, params, result any) error {
	conn, err := Connect(ctx, runDir, id)
	if err != nil {
		return err
	}
	defer conn.Close()
	err = conn.Request(method, params)
	if err == nil {
		err = conn.Answer(ctx, result, nil, func(text json.RawMessage) error { return api.ParseError(text) })
	}
	if rpc.IsGone(err) {
		return Gone()
	}
	return agent.Failed("supervisor", err)
}

// Gone tells that a run's supervisor ended before it answered.
func Gone() error {
	return &agent.Error{Kind: agent.KindConflict, Message: "the run ended meanwhile", Hint: "`clove ps -a` shows how"}
}

package supervisor

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/internal/watch"
)

// How long a run that executes may take to be reachable. The store has it as running a
// moment before its supervisor listens, and longer on a host that starts many. When a run
// has ended, its directory goes, and the wait ends with that.
const (
	patience = 15 * time.Second
	// refusals is how long a socket without a listener may refuse connections: its
	// supervisor was killed, or is between bind(2) and listen(2).
	refusals = 2 * time.Second
	// askAgain is between two attempts then: there is no event for a listen(2).
	askAgain = 20 * time.Millisecond
)

// Connect reaches the supervisor of a run. KindConflict says that there is
// none. A run is known to execute a moment before its supervisor listens.
func Connect(ctx context.Context, runDir string, id agent.ID) (*rpc.Conn, error) {
	conn, err := dial(ctx, runDir, id)
	if !absent(err) {
		return conn, agent.Failed("supervisor", err)
	}
	none := &agent.Error{Kind: agent.KindConflict, Message: "the run has no supervisor that can be reached",
		Hint: "it has ended, or runs in the foreground; `clove ps -a` shows it"}
	path := filepath.Join(runDir, string(id))
	// Watched before the next attempt: a socket that is made in between is not missed.
	written, err := watch.Dir(path)
	if err != nil {
		return nil, none // not even a directory
	}
	defer written.Close()
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	refused := time.NewTimer(refusals)
	defer refused.Stop()
	for {
		if conn, err = dial(ctx, runDir, id); !absent(err) {
			return conn, agent.Failed("supervisor", err)
		}
		var given, again <-chan time.Time
		if errors.Is(err, unix.ECONNREFUSED) {
			given, again = refused.C, time.After(askAgain)
		} else if _, err := os.Lstat(path); err != nil {
			return nil, none
		}
		select {
		case <-written.Changed: // also when the directory itself goes: inotify(7), IN_IGNORED
		case <-again:
		case <-given:
			return nil, none
		case <-ctx.Done():
			return nil, none
		}
	}
}

// dial makes one attempt.
func dial(ctx context.Context, runDir string, id agent.ID) (*rpc.Conn, error) {
	return rpc.Dial(ctx, filepath.Join(runDir, string(id), SocketName))
}

// absent reports that no supervisor listens: there is no socket, or one that a supervisor left, or
// has not listened on yet.
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

// Gone is the error for a run whose supervisor ended before it answered.
func Gone() error {
	return &agent.Error{Kind: agent.KindConflict, Message: "the run ended meanwhile", Hint: "`clove ps -a` shows how"}
}

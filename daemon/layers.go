package daemon

import (
	"bufio"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/runtime"
)

// sandboxes are what cloved needs of the runtime; *runtime.Runtime is one.
type sandboxes interface {
	leftovers
	Panic(reason string) ([]agent.Run, error)
	ClearPanic() error
	Remove(ref string) error
	RemoveLost(before time.Time) ([]runtime.Problem, error)
	Changes(ctx context.Context, reading runtime.Reading) ([]agent.Change, error)
	Homes(uid uint32) ([]agent.KeptHome, error)
	RemoveHome(ref string, uid uint32) error
	CopyKept(ctx context.Context, ref, inside string, to io.Writer) error
	CopyChanges(ctx context.Context, reading runtime.Reading, to io.Writer) (runtime.Copied, error)
	ApplyChanges(ctx context.Context, reading runtime.Reading, agree func(all, chosen []agent.Change) (runtime.Consent, error)) ([]agent.Change, error)
}

// maxChangeBytes bounds what cloved holds of a list of changes in memory: an
// agent can make millions, and several people may ask at once.
const maxChangeBytes = 32 << 20

// layers serves the methods that read the writable layer of a run.
type layers struct {
	sandboxes   sandboxes
	supervisors supervisors
	readers     *slots // of layers
	log         *slog.Logger
}

func (l layers) methods() []handler {
	return []handler{on(methods.RunDiff, l.diff), on(methods.RunApply, l.apply)}
}

// diff sends what a run changed, as notifications.
func (l layers) diff(c *request, p api.DiffParams) (api.DiffResult, error) {
	var changes []agent.Change
	err := l.read(c, runtime.Reading{To: p.To, Paths: p.Paths, Contents: p.Contents, Sums: !p.ListOnly}, func(ctx context.Context, reading runtime.Reading) (err error) {
		changes, err = l.sandboxes.Changes(ctx, reading)
		return err
	})
	if err != nil {
		return api.DiffResult{}, err
	}
	// Sent behind the reading: a caller that reads slowly must keep neither the agent
	// frozen nor a place among the readers.
	for _, change := range changes {
		if err := c.note(api.NoteChange, api.ChangeNote{ID: c.id, Change: change}); err != nil {
			return api.DiffResult{}, err
		}
	}
	result := api.DiffResult{Changes: len(changes)}
	if !p.ListOnly {
		result.Digest = digest(changes)
	}
	return result, nil
}

// apply writes the workspace's changes back as the caller.
func (l layers) apply(c *request, p api.ApplyParams) (api.ApplyResult, error) {
	var changes []agent.Change
	failure := l.read(c, runtime.Reading{To: p.To, Paths: p.Paths, Sums: p.Digest != ""}, func(ctx context.Context, reading runtime.Reading) (err error) {
		changes, err = l.sandboxes.ApplyChanges(ctx, reading, func(all, chosen []agent.Change) (runtime.Consent, error) {
			// Compared while the agent is frozen: it cannot change its files between
			// this and the writing.
			if p.Digest != "" && p.Digest != digest(all) && p.Digest != digest(chosen) {
				return runtime.Consent{}, api.Failure(api.CodeConflict, "look at the changes again", "%s changed its workspace since you looked", c.run.Spec.Name)
			}
			return runtime.Consent{Apply: true, ExecutableConfig: p.AllowExecutableConfig, Instructions: p.AllowInstructions, Each: p.AllowExecutable}, nil
		})
		return err
	})
	var result api.ApplyResult
	for _, change := range changes { // also the part that was done before a failure
		if change.Refused != "" {
			result.Refused++
		} else {
			result.Applied++
		}
		if err := c.note(api.NoteChange, api.ChangeNote{ID: c.id, Change: change}); err != nil {
			return api.ApplyResult{}, err
		}
	}
	if failure == nil && result.Applied > 0 {
		l.log.Info("applied", "run", c.run.Spec.Name, "changes", result.Applied, "peer", c.peer.String())
	}
	return result, failure
}

// copyOut answers run.copy_out for a run at rest, which has no supervisor.
func (l layers) copyOut(c *rpc.Conn, peer caller, request rpc.Message, run agent.Run, inside string) {
	ctx, gone := context.WithCancel(context.Background())
	defer gone()
	defer c.WhenGone(gone)()
	leave, err := l.readers.enter(ctx, peer.owner.UID)
	if err == nil {
		to := bufio.NewWriterSize(pieces{c}, pieceBytes)
		err = l.sandboxes.CopyKept(ctx, string(run.Spec.ID), inside, to)
		// Also what came before a failure, as from a live run.
		err = cmp.Or(err, to.Flush())
		leave()
	}
	if err != nil {
		_ = c.Respond(request.ID, nil, api.ErrorOf(err))
		return
	}
	_ = c.Respond(request.ID, api.Nothing{}, nil)
}

// pieceBytes is how much of an archive a notification has.
const pieceBytes = 64 << 10

// pieces sends an archive. A caller that does not read loses it after a while, because a start of
// the run waits for the reader of its layer.
type pieces struct{ conn *rpc.Conn }

func (p pieces) Write(data []byte) (int, error) {
	params, err := json.Marshal(api.SessionOutput{Stream: api.StreamTar, Data: data})
	if err == nil {
		err = p.conn.Deliver(false, rpc.Message{Method: api.NoteOutput, Params: params})
	}
	if err != nil {
		return 0, err
	}
	return len(data), nil
}

// read calls use with the layer of the call's run, whether it executes or has
// ended. Few are read at once: each costs threads, memory and disk bandwidth.
func (l layers) read(c *request, reading runtime.Reading, use func(ctx context.Context, reading runtime.Reading) error) error {
	leave, err := l.readers.enter(c, c.peer.owner.UID)
	if err != nil {
		return err
	}
	defer leave()
	// With the caller's supplementary groups, which are known here, unlike those of a
	// start: the caller waits for the answer.
	reading.For = c.peer.identity()
	return l.of(c, c.run, reading, use)
}

// of calls use with the layer of a run, whether it executes or has ended.
func (l layers) of(ctx context.Context, run agent.Run, reading runtime.Reading, use func(ctx context.Context, reading runtime.Reading) error) error {
	reading.Run, reading.ListBytes = run, maxChangeBytes
	if atRest(run) {
		return use(ctx, reading) // its start would wait until the layer is read
	}
	if err := reachable(run); err != nil {
		return err
	}
	return supervisor.Layer(ctx, l.supervisors.runDir, run.Spec.ID, func(ctx context.Context, layer *os.File) error {
		reading.Live = layer
		return use(ctx, reading)
	})
}

// atRest reports whether no supervisor has the run's layer.
func atRest(run agent.Run) bool {
	return run.State == agent.StateEnded || run.State == agent.StateQueued
}

// digest identifies the changes below the workspace, with the bytes of files by their sums.
func digest(changes []agent.Change) string {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for _, change := range changes {
		if strings.HasPrefix(string(change.Path), agent.WorkspaceDir+"/") || change.Type == "ref" {
			change.Contents = nil
			_ = encoder.Encode(change) // to a hash, of plain fields: it cannot fail
		}
	}
	return fmt.Sprintf("sha256:%s", hex.EncodeToString(hash.Sum(nil)))
}

package daemon

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/daemon/supervisor"
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
	ApplyChanges(ctx context.Context, reading runtime.Reading, agree func([]agent.Change) (runtime.Consent, error)) ([]agent.Change, error)
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
	err := l.read(c, runtime.Reading{To: p.To}, func(ctx context.Context, reading runtime.Reading) (err error) {
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
	return api.DiffResult{Changes: len(changes), Digest: digest(changes)}, nil
}

// apply writes the workspace's changes back as the caller.
func (l layers) apply(c *request, p api.ApplyParams) (api.ApplyResult, error) {
	var changes []agent.Change
	failure := l.read(c, runtime.Reading{To: p.To, Paths: p.Paths}, func(ctx context.Context, reading runtime.Reading) (err error) {
		changes, err = l.sandboxes.ApplyChanges(ctx, reading, func(found []agent.Change) (runtime.Consent, error) {
			// Compared while the agent is frozen: it cannot change its files between
			// this and the writing.
			if p.Digest != "" && p.Digest != digest(found) {
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
	reading.Run, reading.For, reading.ListBytes = c.run, c.peer.identity(), maxChangeBytes
	if c.run.State == agent.StateEnded || c.run.State == agent.StateQueued {
		return use(c, reading) // its start would wait until the layer is read
	}
	if err := reachable(c.run); err != nil {
		return err
	}
	return supervisor.Layer(c, l.supervisors.runDir, c.run.Spec.ID, func(ctx context.Context, layer *os.File) error {
		reading.Live = layer
		return use(ctx, reading)
	})
}

// digest identifies the changes below the workspace.
func digest(changes []agent.Change) string {
	hash := sha256.New()
	encoder := json.NewEncoder(hash)
	for _, change := range changes {
		if strings.HasPrefix(string(change.Path), agent.WorkspaceDir+"/") || change.Type == "ref" {
			_ = encoder.Encode(change) // to a hash, of plain fields: it cannot fail
		}
	}
	return fmt.Sprintf("sha256:%s", hex.EncodeToString(hash.Sum(nil)))
}

package people

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// held is a foreground run that this server has started and holds.
type held struct {
	spec    agent.Spec
	release context.CancelFunc // ends the run
	done    chan struct{}      // closed at its end

	mu             sync.Mutex // guards the following
	stdout, stderr output
	denied         []string // what its network refused, since the last call of refusals
	record         *agent.Record
	err            error // why there is no record
}

// hold starts a run. It ends when ctx ends, or this process.
func (s *Server) hold(ctx context.Context, spec agent.Spec) (*held, error) {
	spec.Foreground = true
	var started api.RunResult
	if err := s.Cloved.Call(ctx, methods.RunStart.Name, api.StartParams{Spec: spec}, &started); err != nil {
		return nil, err
	}
	h := &held{spec: spec, done: make(chan struct{})}
	var holding context.Context
	holding, h.release = context.WithCancel(context.WithoutCancel(ctx)) // it outlasts the call that needed it
	go func() {
		defer close(h.done)
		record, err := s.Cloved.Hold(holding, string(spec.ID), h.take)
		h.mu.Lock()
		defer h.mu.Unlock()
		h.record, h.err = record, err
	}()
	return h, nil
}

// take keeps a piece of output, and what was refused.
func (h *held) take(piece api.SessionOutput) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case piece.Denied != nil:
		d := piece.Denied
		line := "refused " + d.Target
		if d.Reason != "" {
			line += ": " + d.Reason
		}
		if d.Hint != "" {
			line += " (the user allows it with clove mcp " + d.Hint + ")"
		}
		if len(h.denied) < maxDenied {
			h.denied = append(h.denied, line)
		}
	case piece.Stream == "stderr":
		h.stderr.write(piece.Data)
	default:
		h.stdout.write(piece.Data)
	}
	return nil
}

// maxDenied bounds what waits to be said.
const maxDenied = 16

// refusals are those that were not said yet, one in a line.
func (h *held) refusals() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	said := slices.Clone(h.denied)
	h.denied = nil
	return strings.Join(said, "\n")
}

// ended reports whether the run has ended.
func (h *held) ended() bool {
	select {
	case <-h.done:
		return true
	default:
		return false
	}
}

// ending says how a run that has ended did so.
func (s *Server) ending(h *held) string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.record == nil {
		if h.err != nil && !errors.Is(h.err, context.Canceled) {
			return reason(h.err)
		}
		return "it was ended"
	}
	said := s.Ending(*h.record, h.spec.Limits)
	if failure := h.record.Error; failure != nil {
		said = append(said, failure.Message)
	}
	if len(said) == 0 {
		return string(h.record.Status)
	}
	return strings.Join(said, "; ")
}

// endTime bounds the end of a run.
const endTime = 30 * time.Second

// settle ends a run, and removes it unless its workspace has changes that are only there.
func (s *Server) settle(ctx context.Context, h *held) error {
	ctx, cancel := context.WithTimeout(ctx, endTime)
	defer cancel()
	run := api.RunParams{Run: string(h.spec.ID)}
	if changed, err := s.unapplied(ctx, h); err != nil || changed == 0 {
		err = errors.Join(err, s.Cloved.Call(ctx, methods.RunRemove.Name, api.RemoveParams{RunParams: run, Force: true}, nil))
		h.release()
		if agent.KindOf(err) == agent.KindNotFound { // it was removed at its end
			return nil
		}
		return err
	}
	s.Report("the sandbox " + h.spec.Name + " is kept: its workspace has changes that were not applied (clove diff " + h.spec.Name + ", clove apply " + h.spec.Name + ")")
	err := s.Cloved.Call(ctx, methods.RunSignal.Name, api.SignalParams{RunParams: run, Signal: 9}, nil)
	select {
	case <-h.done:
	case <-ctx.Done():
	}
	h.release()
	if agent.KindOf(err) == agent.KindConflict { // it has ended by itself
		return nil
	}
	return err
}

// unapplied counts the changes of a workspace that is kept with its run.
func (s *Server) unapplied(ctx context.Context, h *held) (int, error) {
	if h.spec.Files.Workspace == "" || h.spec.Remove {
		return 0, nil
	}
	_, changes, err := s.changes(ctx, h, api.DiffParams{ListOnly: true})
	if agent.KindOf(err) == agent.KindNotFound {
		err = nil
	}
	return len(changes), err
}

package apply

import (
	"context"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/service"
)

// Files reads and writes what runs change in their workspaces. Paths are inside, and choose changes; none: all.
type Files interface {
	// Changes returns the changes, and the digest that stands for them.
	Changes(ctx context.Context, run agent.Run, paths []string) ([]agent.Change, string, error)
	// Apply writes the changes with the rights of the run's owner, and returns them, each with why it was refused. Where
	// they have another digest nothing is written, and the error is a conflict.
	Apply(ctx context.Context, run agent.Run, paths []string, digest string) ([]agent.Change, error)
}

// Apply is the service. Its methods may be called from many goroutines.
type Apply struct {
	Files Files // nil: there is no cloved, and nothing is applied
}

// Service returns its method.
func (a Apply) Service() *service.Service {
	return service.New("apply").On(
		service.Asked(agent.AskApply, service.Prepared(agents.AgentApply, service.Stages[api.OwnApplyParams]{}, a.prepare, do, nil), question))
}

// work is what is read for the question, and what was done after the yes.
type work struct {
	changes []agent.Change
	digest  string
}

// leftMost bounds the changes that an answer names.
const leftMost = 32

func (a Apply) prepare(c *service.Call, p api.OwnApplyParams) (w work, err error) {
	switch {
	case a.Files == nil:
		return w, api.Failure(api.CodeUnenforceable, agent.StartCloved(), "without cloved no changes are applied for an agent")
	case c.Bound() != "":
		w.changes, err = a.Files.Apply(c.Context, c.Run, p.Paths, c.Bound())
		return w, err
	}
	w.changes, w.digest, err = a.Files.Changes(c.Context, c.Run, p.Paths)
	if err == nil && len(w.changes) == 0 {
		err = api.Failure(api.CodeNotFound, "", "the run has changed nothing in its workspace that could be applied")
	}
	return w, err
}

// do answers. Before the question it is a rehearsal.
func do(_ *service.Call, _ api.OwnApplyParams, w work) (r api.OwnApplyResult, out service.Outcome, err error) {
	r.Left = []api.CollectLeft{}
	for _, change := range w.changes {
		if change.Refused == "" {
			r.Applied++
			continue
		}
		if r.Refused++; len(r.Left) < leftMost {
			r.Left = append(r.Left, api.CollectLeft{Path: change.Path, Why: change.Refused})
		}
	}
	out.About = fmt.Sprintf("%d changes", r.Applied)
	return r, out, nil
}

// question is what people see: each change. The digest is bound to it.
func question(c *service.Call, p api.OwnApplyParams, w work) (q service.Asking, err error) {
	q = service.Asking{What: fmt.Sprintf("write %s to %s", number(len(w.changes)), c.Run.Spec.Files.Workspace), Says: p.Why, Bound: w.digest,
		Changes: &api.ApprovalChanges{Paths: p.Paths, Digest: w.digest}}
	for _, change := range w.changes {
		q.Shown = append(q.Shown, text(change))
	}
	return q, nil
}

func number(changes int) string {
	if changes == 1 {
		return "1 change"
	}
	return fmt.Sprintf("%d changes", changes)
}

// text is a change as one line.
func text(c agent.Change) string {
	line := fmt.Sprintf("%s %s %s", c.Kind, c.Type, c.Path)
	switch {
	case c.Kind == "deleted" && c.Type == "dir":
		line += ", with everything in it"
	case c.Kind == "deleted":
	case c.Type == "file":
		line += fmt.Sprintf(", %d bytes, mode %04o", c.Size, c.Mode)
	case c.Type == "dir":
		line += fmt.Sprintf(", mode %04o", c.Mode)
	case c.Target != "":
		line += " -> " + string(c.Target)
	}
	if c.From != "" {
		line += ", from " + string(c.From)
	}
	if c.Was != "" {
		line += ", was a " + c.Was
	}
	if why := leftOut(c); why != "" {
		line += "; left out: " + why
	}
	return line
}

// leftOut is why a change is not written although people say yes; empty: it is.
func leftOut(c agent.Change) string {
	switch {
	case c.Refused != "":
		return c.Refused
	case c.ExecutedBy != "":
		return c.ExecutedBy + " executes it"
	case c.Instructs != "":
		return c.Instructs + " follows it"
	}
	return c.Unknown
}

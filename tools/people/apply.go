package people

import (
	"context"
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

type applyArguments struct {
	place
	Paths  []string `json:"paths"`
	DryRun *bool    `json:"dry_run"`
	Digest string   `json:"digest"`
}

// applyChanges shows what the sandbox changed in the workspace, or writes back what was shown.
func (b *sandbox) applyChanges(ctx context.Context, a applyArguments) (answer, error) {
	h := b.last()
	if h == nil {
		return answer{text: "Nothing has changed: no tool has used the sandbox yet.\n"}, nil
	}
	if h.spec.Files.Workspace == "" {
		return answer{}, wrong("the user starts clove mcp with --workspace DIR", "the sandbox has no folder of the host that changes could be written to")
	}
	var paths agent.RawStrings
	for _, at := range a.Paths {
		if !path.IsAbs(at) {
			at = path.Join(agent.WorkspaceDir, at)
		}
		paths = append(paths, path.Clean(at))
	}
	if a.DryRun == nil || *a.DryRun {
		return b.dryRun(ctx, h, paths)
	}
	if a.Digest == "" {
		return answer{}, wrong("call it with dry_run first, and give the digest that it shows", "nothing is written that was not shown")
	}
	var done []agent.Change
	run := api.RunParams{Run: string(h.spec.ID)}
	err := b.server.Cloved.Stream(ctx, methods.RunApply.Name, api.ApplyParams{RunParams: run, Paths: paths, Digest: a.Digest}, nil, collect(&done))
	result := answer{text: b.server.Show(done)}
	if err != nil {
		return result, err
	}
	refused := 0
	for _, c := range done {
		if c.Refused != "" {
			refused++
		}
	}
	result.text += fmt.Sprintf("%d written to %s, %d refused\n", len(done)-refused, h.spec.Files.Workspace, refused)
	if refused > 0 {
		result.failed = fmt.Sprintf("%d changes were refused; clove apply %s asks the user about those that need it", refused, h.spec.Name)
	}
	return result, nil
}

func (b *sandbox) dryRun(ctx context.Context, h *held, paths agent.RawStrings) (answer, error) {
	digest, changes, err := b.server.changes(ctx, h, api.DiffParams{Paths: paths, Contents: true})
	if err != nil {
		return answer{}, err
	}
	if len(changes) == 0 {
		return answer{text: "The workspace has no changes.\n"}, nil
	}
	var all output
	all.write([]byte(b.server.Show(changes)))
	a := answer{}
	a.text, a.left = all.text()
	a.text += fmt.Sprintf("\n%d changes. To write them to %s: dry_run false, digest %s", len(changes), h.spec.Files.Workspace, digest)
	if len(paths) > 0 {
		a.text += ", and the same paths"
	}
	a.text += ".\n"
	if own := slices.ContainsFunc(changes, func(c agent.Change) bool { return c.ExecutedBy+c.Instructs+c.Unknown != "" }); own {
		a.text += "Those that programs of the host execute by themselves, or that instruct agents, will be refused: the user writes them with clove apply " + h.spec.Name + ".\n"
	}
	return a, nil
}

// changes are those of the workspace, with the digest that stands for them.
func (s *Server) changes(ctx context.Context, h *held, p api.DiffParams) (digest string, found []agent.Change, err error) {
	p.Run = string(h.spec.ID)
	var seen api.DiffResult
	err = s.Cloved.Stream(ctx, methods.RunDiff.Name, p, &seen, collect(&found))
	found = slices.DeleteFunc(found, func(c agent.Change) bool {
		return !strings.HasPrefix(string(c.Path), agent.WorkspaceDir+"/") && c.Type != "ref"
	})
	return seen.Digest, found, err
}

// maxContents bounds the bytes of contents that are shown together.
const maxContents = 4 << 20

// collect keeps the changes of a stream.
func collect(changes *[]agent.Change) func(string, json.RawMessage) error {
	bytes := 0
	return func(_ string, text json.RawMessage) error {
		var note api.ChangeNote
		if err := json.Unmarshal(text, &note); err != nil {
			return err
		}
		if c := note.Change.Contents; c != nil {
			if bytes += len(c.Before) + len(c.After); bytes > maxContents {
				note.Change.Contents = &agent.ChangeContents{Mode: c.Mode, Omitted: "the changes are too many"}
			}
		}
		*changes = append(*changes, note.Change)
		return nil
	}
}

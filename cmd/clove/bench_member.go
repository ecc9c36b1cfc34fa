package main

import (
	"context"
	"errors"
	"os"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/bench/run"
	"clove.run/clove/client"
)

// benchByCloved runs attempts for a member of cloved's group: cloved starts each, as it does
// for the member's clove run in the foreground.
type benchByCloved struct{ client *client.Client }

func (s benchByCloved) Run(ctx context.Context, spec agent.Spec, out run.Output) (agent.Record, error) {
	spec.Foreground = true
	_, err := client.Do(ctx, s.client, methods.RunStart, api.StartParams{Spec: spec})
	var failed *api.Error
	switch {
	case errors.As(err, &failed) && failed.Data.Record != nil:
		return *failed.Data.Record, nil
	case err != nil:
		return agent.Record{}, err
	}
	if out.Started != nil {
		out.Started()
	}
	session, err := s.client.Foreground(ctx, api.AttachParams{RunParams: api.RunParams{Run: string(spec.ID)}})
	if err != nil {
		return agent.Record{}, err
	}
	_ = session.CloseInput() // it may be over
	var result api.AttachResult
	err = session.Answer(ctx, &result, func(piece api.SessionOutput) error { return writePiece(out, piece) })
	session.Close() // the run ends with it
	if err == nil && result.Record != nil {
		return *result.Record, nil
	}
	return lostRecord(context.WithoutCancel(ctx), s.client, string(spec.ID), err)
}

// writePiece leaves out what cloved itself has to say: it is in the record.
func writePiece(out run.Output, piece api.SessionOutput) error {
	to := map[string]*os.File{"stdout": out.Stdout, "stderr": out.Stderr}[piece.Stream]
	if to == nil || piece.Denied != nil || piece.Budget != nil {
		return nil
	}
	_, err := to.Write(piece.Data)
	return err
}

// Collect writes with the member's own rights.
func (s benchByCloved) Collect(ctx context.Context, id agent.ID, most int64) ([]agent.Change, error) {
	total := int64(0)
	seen, err := client.Each(ctx, s.client, methods.RunDiff, api.DiffParams{RunParams: api.RunParams{Run: string(id)}}, func(c api.ChangeNote) error {
		if total <= most && strings.HasPrefix(string(c.Change.Path), agent.WorkspaceDir+"/") {
			total += c.Change.Size
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	if total > most {
		return nil, tooLarge()
	}
	var changes []agent.Change
	_, err = client.Each(ctx, s.client, methods.RunApply, api.ApplyParams{RunParams: api.RunParams{Run: string(id)}, AllowExecutableConfig: true, AllowInstructions: true, Digest: seen.Digest},
		func(c api.ChangeNote) error { changes = append(changes, c.Change); return nil })
	return changes, err
}

// KeepLayer is refused: cloved mounts no image that a member could have written.
func (s benchByCloved) KeepLayer(context.Context, agent.ID, string) (bool, error) {
	return false, needsRoot()
}

func needsRoot() error {
	return &agent.Error{Kind: agent.KindPrivilege, Step: "bench", Message: "the suite has an environment with root: kept, which only root can run", Hint: "run it with sudo"}
}

func (s benchByCloved) Remove(ctx context.Context, id agent.ID) error {
	return client.Perform(ctx, s.client, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: string(id)}})
}

// tooLarge is about the files of an agent.
func tooLarge() error {
	return &agent.Error{Kind: agent.KindInvalid, Message: "they have more bytes than its disk", Hint: "files with holes count in full"}
}

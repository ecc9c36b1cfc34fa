package main

import (
	"context"
	"os"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/bench/run"
	"clove.run/clove/policies/host"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
)

// benchSandboxes runs attempts as clove run does in the foreground: root's here. Where
// cloved runs, it keeps the agents' grants and budgets.
type benchSandboxes struct {
	launcher launcher
	line     *cli.Context
}

// sandboxes are root's own, or a member's by cloved.
func (p benchVerbs) sandboxes(c *cli.Context, h host.Host) (run.Sandboxes, error) {
	if h.UID == 0 {
		return &benchSandboxes{launcher(p), c}, nil
	}
	d, err := p.cloved(c)
	if agent.KindOf(err) == agent.KindNotFound && err != nil {
		err = &agent.Error{Kind: agent.KindPrivilege, Message: "clove needs root to make namespaces and cgroups, and cloved, which would do it for you, does not run",
			Hint: "run it with sudo, or start cloved"}
	}
	if err != nil {
		return nil, err
	}
	return benchByCloved{d}, nil
}

func (s *benchSandboxes) Run(ctx context.Context, spec agent.Spec, out run.Output) (agent.Record, error) {
	b, err := s.launcher.backend(s.line)
	if err != nil {
		return agent.Record{}, err
	}
	null, err := os.Open(os.DevNull)
	if err != nil {
		return agent.Record{}, err
	}
	defer null.Close()
	streams := runtime.IO{Layer: out.Layer, Stdin: null, Stdout: out.Stdout, Stderr: out.Stderr}
	if out.Shown != nil {
		streams.Shown = &runtime.ShownRoot{Image: *out.Shown, Target: run.AttemptRoot}
	}
	if out.Started != nil {
		streams.Started = func(*runtime.Live) { out.Started() }
	}
	closer, err := s.launcher.share(s.line, spec, &streams)
	if err != nil {
		return agent.Record{}, err
	}
	defer closer.Close() // the record is there; what could not be settled, clove check shows
	return b.Run(ctx, spec, streams)
}

// Collect agrees to everything that is not too large: the folder is the bench's own, and
// holds no user's work.
func (s *benchSandboxes) Collect(_ context.Context, id agent.ID, most int64) ([]agent.Change, error) {
	b, err := s.launcher.backend(s.line)
	if err != nil {
		return nil, err
	}
	total := int64(0)
	applied, err := b.Apply(string(id), "", nil, func(found []rootfs.Change) runtime.Consent {
		for _, c := range found {
			if total <= most { // the sum of all might overflow
				total += c.Size
			}
		}
		return runtime.Consent{Apply: total <= most, ExecutableConfig: true, Instructions: true}
	})
	if err == nil && total > most {
		return nil, tooLarge()
	}
	changes := make([]agent.Change, len(applied))
	for i, c := range applied {
		changes[i] = agent.Change{Kind: string(c.Kind), Path: agent.RawString(c.Path), Type: string(c.Type), Size: c.Size, Mode: c.Mode, Target: agent.RawString(c.Target), Was: string(c.Was), Refused: c.Refused}
	}
	return changes, err
}

func (s *benchSandboxes) KeepLayer(_ context.Context, id agent.ID, to string) (bool, error) {
	b, err := s.launcher.backend(s.line)
	if err != nil {
		return false, err
	}
	return b.CopyLayer(string(id), to)
}

func (s *benchSandboxes) Remove(_ context.Context, id agent.ID) error {
	b, err := s.launcher.backend(s.line)
	if err != nil {
		return err
	}
	return b.Remove(string(id))
}

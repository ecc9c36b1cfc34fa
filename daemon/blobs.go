package daemon

import (
	"context"

	"clove.run/clove/agent"
	"clove.run/clove/daemon/supervisor"
)

// Size is the size of a regular file of a run's, which its supervisor opens with the agent's rights. It and the
// following make a blobs.Files.
func (f files) Size(ctx context.Context, run agent.Run, path string) (int64, error) {
	var size supervisor.SizeResult
	err := f.one(ctx, run, supervisor.MethodSize, supervisor.PackParams{Path: agent.RawString(path)}, &size)
	return size.Bytes, err
}

// Take copies a file of a run's, which has so many bytes, to a new one of root's.
func (f files) Take(ctx context.Context, run agent.Run, path, to string, bytes int64) error {
	return f.one(ctx, run, supervisor.MethodRead, supervisor.PackParams{Path: agent.RawString(path), Spool: to, Most: bytes}, nil)
}

// Give copies a file of root's to a new one of a run's.
func (f files) Give(ctx context.Context, run agent.Run, from, path string) error {
	return f.one(ctx, run, supervisor.MethodWrite, supervisor.PackParams{Path: agent.RawString(path), Spool: from}, nil)
}

// one asks for a copy of one file, within the places of the owner's.
func (f files) one(ctx context.Context, run agent.Run, method string, params supervisor.PackParams, result any) error {
	if err := f.cache.refresh(); err != nil {
		return err
	}
	if live, found := f.cache.get(run.Spec.ID); found {
		run = live
	}
	leave, err := f.layers.readers.enter(ctx, run.Owner.UID)
	if err != nil {
		return err
	}
	defer leave()
	return f.layers.supervisors.ask(ctx, run, method, params, result)
}

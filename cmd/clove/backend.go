package main

import (
	"clove.run/clove/kernel"
	"context"
	"encoding/json"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
)

// runner starts one agent and waits for its end, refuses a queued run, or guards an OCI
// container.
type runner interface {
	Run(ctx context.Context, spec agent.Spec, streams runtime.IO) (agent.Record, error)
	Refuse(id agent.ID, cause error) error
	Guard(ctx context.Context, order agent.Guard, held func()) error
}

// archive answers questions about the runs in the store.
type archive interface {
	List() ([]agent.Run, error)
	Get(ref string) (agent.Run, error)
	Remove(ref string) error
}

// layers reads the writable layers that were kept.
type layers interface {
	Diff(ref, to string) ([]rootfs.Change, error)
	Apply(ref, to string, paths []string, confirm func([]rootfs.Change) runtime.Consent) ([]rootfs.Change, error)
	CopyLayer(ref, to string) (kept bool, err error)
}

// cleaner finds and removes what a killed clove left, and copies the store.
type cleaner interface {
	Check() ([]runtime.Problem, error)
	GC() ([]runtime.Problem, error)
	Lost() []runtime.Problem
	RemoveLost(before time.Time) ([]runtime.Problem, error)
	Backup(to string) error
	Panic(reason string) ([]agent.Run, error)
	ClearPanic() error
}

// kernelFile is the file kernel.db. While a cloved has it, the errors are of KindBusy.
type kernelFile interface {
	BackupKernel(to string) error
	CheckKernel() ([]string, error)
}

// insides is what `clove debug` shows of the store and of running sandboxes.
type insides interface {
	StoreOverview() (runtime.StoreOverview, error)
	StoredRun(ref string) (json.RawMessage, error)
	History(limit int) ([]agent.RunEvent, error)
	Plan(run agent.Run) (string, error)
}

// backend is package runtime as the commands use it. Tests replace it, so that the
// command line can be tested without root.
type backend interface {
	runner
	archive
	layers
	cleaner
	kernelFile
	insides
}

func openRuntime(paths runtime.Paths) (backend, error) {
	r, err := runtime.Open(paths)
	if err != nil {
		return nil, err
	}
	return struct {
		*runtime.Runtime
		kernelFile
	}{r, kernel.File(paths.Kernel())}, nil
}

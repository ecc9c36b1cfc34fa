package main

import (
	"context"
	"encoding/json"
	"io"
	"path/filepath"
	"time"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/client"
	"clove.run/clove/kernel"
	"clove.run/clove/policies/host"
	"clove.run/clove/rootfs"
	"clove.run/clove/runtime"
)

// access is what a command reaches: the host, the store, cloved. Tests replace the functions.
type access struct {
	host    func() (host.Host, error)
	open    func(runtime.Paths) (backend, error)
	dial    func(ctx context.Context, socket string) (*client.Client, error)
	doctor  func(run string) []runtime.Finding
	systemd systemd
	own     func() (string, error) // the path of clove itself
	ending  func(status int)       // called when a foreground run has ended, with its exit status; may be nil
}

// systemd is the directory of an administrator's units on this host, and a path that
// exists while systemd runs.
type systemd struct{ units, booted string }

// socket is the path of cloved's socket, whether or not cloved runs.
func socket(c *cli.Context) string {
	if path := c.String(flagSocket); path != "" {
		return path
	}
	return filepath.Join(c.String(flagRunDir), "clove.sock")
}

// cloved connects to the daemon, for commands that need it.
func (a *access) cloved(c *cli.Context) (*client.Client, error) { return a.dial(c.Context, socket(c)) }

// either connects to cloved if it runs. Without cloved, root uses the store directly;
// the store's files are root's.
func (a *access) either(c *cli.Context) (*client.Client, backend, error) {
	// cloved first: only it knows, for example, why a run waits.
	d, derr := a.dial(c.Context, socket(c))
	if derr == nil {
		return d, nil, nil
	}
	// Only without cloved the store is used: a cloved that refuses or fails must not be
	// bypassed.
	if agent.KindOf(derr) != agent.KindNotFound {
		return nil, nil, derr
	}
	b, err := a.ownStore(c)
	return nil, b, err
}

// ownStore opens the store for a caller that no cloved answers.
func (a *access) ownStore(c *cli.Context) (backend, error) {
	b, err := a.backend(c)
	if err != nil && agent.KindOf(err) == agent.KindPrivilege {
		err = &agent.Error{Kind: agent.KindPrivilege, Message: "cloved does not run, and only root can use clove without it", Hint: "use sudo, or start cloved"}
	}
	return b, err
}

// backend opens the runtime in the directories that the flags name. Commands that need
// no store do not call it: opening creates files.
func (a *access) backend(c *cli.Context) (backend, error) {
	paths, err := directories(c)
	if err != nil {
		return nil, err
	}
	return a.open(paths)
}

// directories are those of the flags, absolute.
func directories(c *cli.Context) (runtime.Paths, error) {
	paths := runtime.Paths{State: c.String(flagRoot), Run: c.String(flagRunDir)}
	for flag, dir := range map[string]*string{"--" + flagRoot: &paths.State, "--" + flagRunDir: &paths.Run} {
		// Absolute, because supervisors and the store keep the paths.
		absolute, err := filepath.Abs(*dir)
		if err != nil || *dir == "" {
			return paths, &agent.Error{Kind: agent.KindInvalid, Step: flag, Message: "no directory is named", Err: err}
		}
		*dir = absolute
	}
	return paths, nil
}

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
	Diff(ref, to string, paths []string) ([]rootfs.Change, error)
	Apply(ref, to string, paths []string, confirm func([]rootfs.Change) runtime.Consent) ([]rootfs.Change, error)
	CopyLayer(ref, to string) (kept bool, err error)
	CopyKept(ctx context.Context, ref, inside string, to io.Writer) error
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
	SweepKernel() ([]string, error)
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
	homes
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

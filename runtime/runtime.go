package runtime

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/cgroups"
	"clove.run/clove/egress/host"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/rootfs"
	"clove.run/clove/store"
)

// Runtime launches agents and answers for those that it launched. It holds
// nothing between calls, so any number of them may serve the same Paths.
type Runtime struct {
	reaper
	// failAt makes the named launch step fail; tests sweep it over all steps.
	failAt func(step string) error
}

func (r *Runtime) fault(step string) error {
	if r.failAt == nil {
		return nil
	}
	return r.failAt(step)
}

// Open prepares the directories. It needs root: a KindPrivilege error says so.
func Open(paths Paths) (*Runtime, error) {
	// Only the id is checked here. Which of root's capabilities are missing is said by the
	// probes.
	if os.Geteuid() != 0 {
		return nil, &agent.Error{Kind: agent.KindPrivilege, Message: "clove needs root to make namespaces and cgroups",
			Hint: "run it with sudo; the agent itself never runs as root"}
	}
	for dir, mode := range map[string]os.FileMode{paths.layers(): 0o700, paths.templates(): 0o700, paths.Run: runMode} {
		if err := os.MkdirAll(dir, mode); err != nil {
			return nil, &agent.Error{Step: "directories", Message: "cannot make " + dir,
				Hint: "name others with --root and --run-dir", Err: err}
		}
	}
	executable, err := findInit()
	if err != nil {
		return nil, err
	}
	this, err := paths.installation()
	if err != nil {
		return nil, agent.Failed("installation", err)
	}
	return &Runtime{reaper: reaper{site{paths, this.ID}, executable}}, nil
}

// Guard is host.Guard with the gate that is installed beside clove-init.
func (r *Runtime) Guard(ctx context.Context, order agent.Guard, held func()) error {
	return host.Guard(ctx, besideInit(r.init, host.Program), order, held)
}

// List returns every run that is known, newest first.
func (r *Runtime) List() (runs []agent.Run, err error) {
	err = r.withStore(func(s *store.Store) error { runs, err = s.List(); return err })
	return runs, err
}

// SupervisorCgroup opens the cgroup in which the supervisors of detached agents
// live, apart from their starter's: a restart of cloved must not end them. It is nil on
// hosts that have none for them.
func SupervisorCgroup() (*os.File, error) {
	h, err := detect()
	if err != nil {
		return nil, err
	}
	group, err := h.PrepareSupervisors()
	return group, agent.Failed("cgroup of supervisors", err)
}

// Backup writes a sound copy of the store to a file that does not exist yet.
// The layers of ended runs are not in it.
func (r *Runtime) Backup(to string) error {
	return r.withStore(func(s *store.Store) error { return s.Backup(to) })
}

// HostMemory is what the host has and what agents use of it, in bytes.
type HostMemory struct {
	Used      int64 // by the agents that live
	Available int64 // as the kernel estimates it, for anything on the host
	Kept      int64 // what agents together never get
}

// Memory returns the host's memory and what the live ones of these runs use.
func (r *Runtime) Memory(runs []agent.Run) (HostMemory, error) {
	host, err := cgroups.ReadHostMemory()
	if err != nil {
		return HostMemory{}, agent.Failed("memory of the host", err)
	}
	var live []map[string]string
	for _, run := range runs {
		if run.Lease != nil {
			live = append(live, run.Lease.Cgroups)
		}
	}
	used, err := cgroups.UseTogether(live)
	return HostMemory{Used: used, Available: host.Available, Kept: host.Kept()}, agent.Failed("memory of agents", err)
}

// LimitTogether limits the memory of all agents together to most bytes, and to less than
// the host has (cgroups.Host.LimitTogether); 0: only to that.
func (r *Runtime) LimitTogether(most int64) error {
	h, err := detect()
	if err != nil {
		return err
	}
	return agent.Failed("memory of all agents", h.LimitTogether(most))
}

// StoreOverview is the store's file as it lies on the disk.
type StoreOverview = store.Overview

// StoreOverview looks into the store's file.
func (r *Runtime) StoreOverview() (overview StoreOverview, err error) {
	err = r.withStore(func(s *store.Store) error { overview, err = s.Overview(); return err })
	return overview, err
}

// StoredRun returns a run as it lies in the store, secrets included.
func (r *Runtime) StoredRun(ref string) (value json.RawMessage, err error) {
	err = r.withStore(func(s *store.Store) error { value, err = s.Raw(ref); return err })
	return value, err
}

// History returns what happened last, at most limit events.
func (r *Runtime) History(limit int) (past []agent.RunEvent, err error) {
	err = r.withStore(func(s *store.Store) error { past, err = s.History(limit); return err })
	return past, err
}

// Plan returns the steps by which a run's root is built, as this host would
// build it now.
func (r *Runtime) Plan(run agent.Run) (string, error) {
	// A run without a lease gets its ids at its next start. The first range is used for
	// them, as in prepare.
	hostID := uint32(agent.FirstHostID)
	if run.Lease != nil {
		hostID = run.Lease.HostID()
	}
	root := rootConfig(r.paths, run.Spec, hostID)
	var err error
	if root.ResolvConf, root.Hosts, err = networkFiles(run.Spec); err != nil {
		return "", err
	}
	plan, err := rootfs.NewPlan(root)
	if err != nil {
		return "", err
	}
	return plan.String(), nil
}

// Serve binds the installation to its run directory for as long as the file that it returns
// is open; cloved holds it. It fails while another cloved serves the same state directory,
// and while a live run uses another run directory.
func (r *Runtime) Serve() (sign *os.File, err error) {
	for deadline := time.Now().Add(servePatience); ; time.Sleep(5 * time.Millisecond) {
		sign, err = r.serve()
		if !errors.Is(err, errAlive) || time.Now().After(deadline) {
			break
		}
	}
	if errors.Is(err, errAlive) {
		err = &agent.Error{Kind: agent.KindBusy, Message: "another cloved serves " + r.paths.State, Hint: "use that one"}
	}
	return sign, agent.Failed("run directory", err)
}

// serve is one attempt.
func (r *Runtime) serve() (sign *os.File, err error) {
	err = descriptor.Exclusively(r.paths.State, func() (err error) {
		if err = r.paths.bind(); err == nil {
			sign, err = r.paths.signs().give(serverSign)
		}
		return err
	})
	return sign, err
}

// servePatience is how long cloved waits for the sign of one before it. A cloved that is
// killed while it starts a supervisor leaves its child with a copy, for the moment between
// fork and exec, which is long on a busy machine.
const servePatience = 5 * time.Second

package node

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/undo"
)

// Cloved describes where a node's cloved belongs and how systemd is made to keep it
// running. Without cloved no pod has network rules.
type Cloved struct {
	Programs string // directory of cloved and of what it starts, absolute
	Units    string // directory of an administrator's units, /etc/systemd/system
	Booted   string // a path that exists while systemd runs, sd_booted(3)
	// Systemctl calls systemctl, and returns what that wrote.
	Systemctl func(ctx context.Context, args ...string) (string, error)
	// Serves asks the node's cloved something: nil, it answered.
	Serves func(context.Context) error
}

// ClovedResult is what was done about cloved.
type ClovedResult struct {
	Unit    string `json:"unit,omitempty"` // file of the unit; empty: none, or cloved was started without a unit
	Own     bool   `json:"own"`            // Install wrote it; otherwise it is left alone
	Changed bool   `json:"changed"`
}

// takeBackTime bounds the undoing of a failed installation: by their units, cloved has
// half a minute to stop and the agents one minute.
const takeBackTime = 2 * time.Minute

// InstallWith makes cloved serve and then calls Install, so that no pod finds a handler
// without cloved. If either fails, the node is left with neither.
func InstallWith(ctx context.Context, cloved Cloved, c Containerd, h Handler) (Result, error) {
	var steps undo.Stack
	if err := checkBinary(h.Binary); err != nil {
		return Result{}, err
	}
	served, err := cloved.install(ctx, &steps)
	if err != nil {
		return Result{}, takenBack(agent.Failed("cloved", err), steps.Run())
	}
	result, err := Install(ctx, c, h)
	if err != nil {
		return result, takenBack(err, steps.Run())
	}
	result.Cloved = &served
	return result, nil
}

// takenBack adds to err what could not be undone after it.
func takenBack(err, left error) error {
	if left == nil {
		return err
	}
	return &agent.Error{Kind: agent.KindInternal, Step: "cloved", Message: "the node was not restored to its previous state", Err: errors.Join(err, left),
		Hint: "clove node uninstall takes away what is left"}
}

// UninstallWith calls Uninstall and then ends cloved, if Install wrote its units.
// Guards and agents end with it: call it when no pod of clove's is left.
func UninstallWith(ctx context.Context, cloved Cloved, c Containerd) (Result, error) {
	result, err := Uninstall(ctx, c)
	if err != nil {
		return result, err
	}
	ended, err := cloved.uninstall(ctx)
	result.Cloved = &ended
	return result, agent.Failed("cloved", err)
}

// install brings cloved up by systemd units, unless another one serves. It puts its
// undo on steps.
func (c Cloved) install(ctx context.Context, steps *undo.Stack) (ClovedResult, error) {
	unit, own, err := c.find(ctx)
	if err != nil || !own {
		return ClovedResult{Unit: unit}, err
	}
	result := ClovedResult{Unit: unit, Own: true}
	if err := c.checkPrograms(); err != nil {
		return result, err
	}
	old, made, err := c.unitFiles()
	if err != nil {
		return result, err
	}
	pid, err := c.property(ctx, "MainPID")
	if err != nil {
		return result, err
	}
	// Nothing to do if the units are the same, the process executes the program that is
	// installed, and it answers. A restart would interrupt its clients for nothing.
	names := changed(old, made)
	if len(names) == 0 && c.executes(pid) && c.Serves(ctx) == nil {
		return result, nil
	}
	message := "it does not serve"
	if len(names) > 0 {
		message += ", so its units are as they were before"
		steps.Add("cloved", func() error { return c.takeBack(old) })
	}
	if err := c.start(ctx, made, names, pid != "0"); err != nil {
		return result, &agent.Error{Kind: agent.KindInternal, Step: "cloved", Message: message, Err: err,
			Hint: "`journalctl -u " + serviceUnit + "` says why; without cloved, use --cloved no: pods with network rules do not start then"}
	}
	result.Changed = true
	return result, nil
}

// find decides which cloved serves this node: one that was installed otherwise, which
// must serve already, or that of the units that Install writes.
func (c Cloved) find(ctx context.Context) (unit string, own bool, err error) {
	own, unit, err = c.ownUnits()
	if err != nil || own {
		return filepath.Join(c.Units, serviceUnit), own, err
	}
	_, err = os.Stat(c.Booted)
	booted := err == nil
	// systemd may know a unit of that name from another directory, for example the
	// Debian package's.
	if unit == "" && booted {
		if unit, err = c.property(ctx, "FragmentPath"); err != nil {
			return "", false, err
		}
	}
	err = c.Serves(ctx)
	switch {
	case err == nil:
		return unit, false, nil
	case unit != "":
		return unit, false, &agent.Error{Kind: agent.KindBusy, Step: "cloved", Message: unit + " was not installed by clove node install, and its cloved does not respond", Err: err,
			Hint: "start it: systemctl enable --now " + socketUnit + " " + serviceUnit + "; or omit cloved with --cloved no: pods with network rules do not start then"}
	case !booted:
		return "", false, &agent.Error{Kind: agent.KindUnenforceable, Step: "cloved", Message: "systemd does not run here, and no cloved either", Err: err,
			Hint: "have your own service manager start cloved; or omit it with --cloved no: pods with network rules do not start then"}
	case agent.KindOf(err) != agent.KindNotFound:
		return "", false, &agent.Error{Kind: agent.KindBusy, Step: "cloved", Message: "a cloved that systemd did not start holds the socket, and does not respond", Err: err,
			Hint: "end or repair it; or omit cloved with --cloved no: pods with network rules do not start then"}
	}
	return filepath.Join(c.Units, serviceUnit), true, nil
}

// property is a property of cloved's service, as systemd has loaded it.
func (c Cloved) property(ctx context.Context, name string) (string, error) {
	value, err := c.Systemctl(ctx, "show", "--property="+name, "--value", serviceUnit)
	return strings.TrimSpace(value), err
}

// executes reports whether a process executes the program that is installed now: an
// upgrade replaces the file by a rename, and the old process keeps the old file.
func (c Cloved) executes(pid string) bool {
	running, err := os.Stat(filepath.Join("/proc", pid, "exe"))
	if err != nil {
		return false
	}
	installed, err := os.Stat(filepath.Join(c.Programs, "cloved"))
	return err == nil && os.SameFile(running, installed)
}

// start makes systemd read the units and run cloved by them. The socket stays open
// while an old cloved is replaced, so that clients wait instead of failing, unless the
// socket's own unit changed.
func (c Cloved) start(ctx context.Context, made []file, names []string, ran bool) error {
	if err := storeAll(made); err != nil {
		return err
	}
	calls := [][]string{{"daemon-reload"}, {"enable", "--now", socketUnit, serviceUnit}}
	switch {
	case ran && slices.Contains(names, socketUnit):
		calls = append(calls, []string{"restart", socketUnit, serviceUnit})
	case ran:
		calls = append(calls, []string{"restart", serviceUnit})
	}
	for _, call := range calls {
		if _, err := c.Systemctl(ctx, call...); err != nil {
			return err
		}
	}
	// systemd reports success as soon as the processes run. Only an answer shows that
	// cloved serves.
	return c.Serves(ctx)
}

// takeBack restores the units' old text and systemd's old state. It has a context of
// its own, because the caller's may be what ended the installation.
func (c Cloved) takeBack(old []file) error {
	ctx, cancel := context.WithTimeout(context.Background(), takeBackTime)
	defer cancel()
	served := old[slices.Index(unitNames, serviceUnit)].exists
	var errs []error
	// Before the files are gone: systemd cannot stop what it has no unit for.
	if !served {
		errs = append(errs, c.end(ctx))
	}
	_, err := c.Systemctl(ctx, "daemon-reload")
	errs = append(errs, storeAll(old), err)
	if served {
		_, err = c.Systemctl(ctx, "restart", socketUnit, serviceUnit)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// end stops cloved with everything below it, and makes systemd forget the units. Units
// without a file are left out: systemd would report them as errors, and an installation
// that was cut short leaves such.
func (c Cloved) end(ctx context.Context) error {
	call := func(verb string, units ...string) error {
		units = slices.DeleteFunc(units, func(unit string) bool { _, err := os.Stat(filepath.Join(c.Units, unit)); return err != nil })
		if len(units) == 0 {
			return nil
		}
		_, err := c.Systemctl(ctx, append(strings.Fields(verb), units...)...)
		return err
	}
	// cloved first, so that it starts nothing more; then the agents' unit and the
	// slice.
	err := errors.Join(call("disable --now", serviceUnit, socketUnit), call("stop", agentsUnit, sliceUnit))
	_ = call("reset-failed", serviceUnit, socketUnit, agentsUnit) // an error for a unit that did not fail
	return err
}

// uninstall removes the units only if Install wrote them all. If cloved could not be
// stopped, its units stay, so that a second try can stop it.
func (c Cloved) uninstall(ctx context.Context) (ClovedResult, error) {
	own, strange, err := c.ownUnits()
	if err != nil || !own {
		return ClovedResult{Unit: strange}, err
	}
	result := ClovedResult{Unit: filepath.Join(c.Units, serviceUnit), Own: true}
	if err := c.end(ctx); err != nil {
		return result, err
	}
	old, _, err := c.unitFiles()
	if err != nil {
		return result, err
	}
	for i := range old {
		old[i].exists = false
	}
	if err := storeAll(old); err != nil {
		return result, err
	}
	_, err = c.Systemctl(ctx, "daemon-reload")
	result.Changed = err == nil
	return result, err
}

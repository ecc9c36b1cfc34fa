package guard

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/internal/pidfd"
	"clove.run/clove/netns"
)

// askTime bounds a start's wait for cloved and the guard. A guard on a busy node begins
// well within it.
const askTime = time.Minute

// Ask lets the cloved at socket start the guard of a container, and returns when the rules
// are in force, within a minute. The container must not execute before that. Ask may be
// called again, because a start may fail or be killed after it.
//
// waits returns an error for a container that no longer waits: then the guard of another
// start is in charge. Between Ask and the execution a second start may still replace the
// guard; the container then has no network until the new one is ready. The error is of
// KindUnenforceable if no cloved listens, otherwise cloved's own.
func Ask(socket string, order agent.Guard, waits func() error) error {
	ctx, cancel := context.WithTimeout(context.Background(), askTime)
	defer cancel()
	starts, err := lock(ctx, order.Directory)
	if err != nil {
		return err
	}
	defer starts.Close()
	if err := waits(); err != nil {
		return err
	}
	// Under the lock and after waits: the guard that is killed here cannot be that of a
	// container that executes.
	if err := endEarlier(order.Directory); err != nil {
		return err
	}
	cloved, err := client.Dial(ctx, socket)
	if agent.KindOf(err) == agent.KindNotFound {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "network", Message: "its rules need cloved, which does not run on this node",
			Hint: "install it, and " + agent.StartCloved(), Err: err}
	}
	if err != nil {
		return err
	}
	defer cloved.Close()
	return client.Perform(ctx, cloved, methods.Guard, api.GuardParams{Guard: order})
}

// lock serialises starts and removals of a container; the caller closes it. The error
// is fs.ErrNotExist if there is no directory, and ctx's if another call has the lock for
// so long.
func lock(ctx context.Context, directory string) (*os.File, error) {
	file, err := os.Open(directory)
	if err != nil {
		return nil, err
	}
	if err = descriptor.LockWithin(ctx, file, unix.LOCK_EX); err == nil {
		return file, nil
	}
	file.Close()
	if ctx.Err() != nil {
		return nil, fmt.Errorf("another start of the container still sets up its network rules: %w", err)
	}
	return nil, &os.PathError{Op: "flock", Path: directory, Err: err}
}

// endEarlier kills the guard of an earlier start. Its rules stay until the new guard takes
// them over, so the namespace is never without rules.
func endEarlier(directory string) error {
	state, err := agent.ReadGuardState(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the state of the container's guard: %w", err)
	}
	return end(state)
}

// Ruled refuses a pod's member unless the rules in the pod's namespace are the
// member's own, because nothing else would enforce them (KindUnenforceable).
func Ruled(order agent.Guard) error {
	n, process, err := netns.OpenProcess(order.PID, order.Start)
	if err != nil {
		return err
	}
	defer n.Close()
	defer process.Close()
	// Two errors, because their remedies differ: no rules at all mean that the engine kept
	// the annotations from the sandbox; other rules that the pod's containers disagree.
	ruled, err := n.Ruled()
	if err != nil {
		return err
	}
	if !ruled {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "network", Message: "no network rules are in force in the pod's network",
			Hint: "the pod's sandbox needs the same annotations: containerd hands them on when pod_annotations of the runtime names run.clove.*; " +
				"Podman's does not get them, so run the container in no pod"}
	}
	serves, err := n.Serves(order.Policy())
	if err == nil && !serves {
		err = &agent.Error{Kind: agent.KindUnenforceable, Step: "network", Message: "the network rules in force in the pod's network are not this container's",
			Hint: "give the pod's sandbox and all its containers the same network annotations; a container that needs others needs a pod of its own"}
	}
	return err
}

// endTime bounds the wait for a guard that was killed.
const endTime = 10 * time.Second

// Release undoes Ask, once the container's process is gone: it ends the guard and its
// gate, and removes the rules from the namespace. directory is the container's; path
// names the namespace on the host, "" for one that ends with the container's processes.
// Parts that are gone already are no error. After an error Release may be called again: the
// file with the state is removed last.
func Release(directory, path string) error {
	// Before the lock is taken: a start may hold it while it waits for this very guard.
	if err := endEarlier(directory); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), endTime)
	defer cancel()
	starts, err := lock(ctx, directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer starts.Close()
	state, err := agent.ReadGuardState(directory)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot read the state of the container's guard: %w", err)
	}
	// Again, under the lock: a start may have begun a new guard after the first look.
	if err := end(state); err != nil {
		return err
	}
	if err := clear(state, path); err != nil {
		return err
	}
	return os.Remove(filepath.Join(directory, agent.GuardStateFile))
}

// end kills the guard, unless the process with its number is another one by now. Its gate
// ends with it, because its channel closes.
func end(state agent.GuardState) error {
	// The rules of mode none need no guard.
	if state.PID == 0 {
		return nil
	}
	process, err := pidfd.OpenStarted(state.PID, state.Start)
	if pidfd.Gone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("cannot open the guard's process: %w", err)
	}
	defer process.Close()
	if err := process.Signal(unix.SIGKILL); err != nil {
		return fmt.Errorf("cannot end the guard: %w", err)
	}
	if !process.WaitFor(endTime) {
		return errors.New("cannot end the guard: it hangs in the kernel")
	}
	return nil
}

// clear removes the rules from the namespace at path. If the path names another namespace
// by now, there is nothing to remove: an engine reuses names.
func clear(state agent.GuardState, path string) error {
	if path == "" {
		return nil
	}
	n, err := netns.Open(path)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, netns.ErrNoNamespace) {
		return nil // the engine has removed it already
	}
	if err != nil {
		return err
	}
	defer n.Close()
	if identity, err := n.Identity(); err != nil || identity != state.Namespace {
		return err
	}
	return n.Clear(state.Owner)
}

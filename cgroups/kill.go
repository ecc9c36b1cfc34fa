package cgroups

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/pidfd"
)

// roundPatience is how long killed processes get to end before Kill sends the signal again.
// A process that frees much memory takes longer; a second SIGKILL has no effect on it.
const roundPatience = 100 * time.Millisecond

// batch bounds the pidfds that Kill holds at once, because of RLIMIT_NOFILE.
const batch = 128

// Kill ends every process of the group, sub-cgroups included, and returns when none is
// left. Zombies do not count: only their parent can reap them. It works against processes
// that fork, and on frozen and stopped ones. When ctx ends first, the error names the
// remaining processes and where in the kernel they wait.
func (g *Group) Kill(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	for round := 0; ; round++ {
		// Listed before the signal: awaitExits needs to know which processes the signal is
		// about to end.
		pids, err := g.members()
		if err != nil {
			return fmt.Errorf("cannot list processes to kill: %w", err)
		}
		if len(pids) == 0 {
			g.letGo() // a group that is empty but still frozen would look paused for ever
			return nil
		}
		// Checked only when processes are left: a kill that succeeds in its last moment is
		// no error.
		if ctx.Err() != nil {
			return fmt.Errorf("cannot kill %s: %w", describe(pids), ctx.Err())
		}
		if err := g.strike(round); err != nil {
			return err
		}
		awaitExits(ctx, pids)
	}
}

// KillBut sends SIGKILL to every process of the group except keep, and does not wait for
// their end. When it returns nil, none of them executes any more code, and neither does any
// child that they were forking.
func (g *Group) KillBut(keep int) error {
	// The freeze is requested, not awaited. A process that is throttled for want of CPU
	// time enters the freezer when it is scheduled next, and so do its children.
	_ = g.freeze(0)
	defer g.letGo()
	// keep counts as signalled already, which is what spares it.
	struck := []int{keep}
	for deadline := time.Now().Add(killButPatience); ; {
		pids, err := g.members()
		if err != nil {
			return fmt.Errorf("cannot list processes to kill: %w", err)
		}
		// fork(2) fails with a SIGKILL pending, so this terminates.
		pids = slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(struck, pid) })
		switch {
		case len(pids) == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("cannot kill %s: new processes appear all the time", describe(pids))
		}
		for some := range slices.Chunk(pids, batch) {
			if err := g.signal(some); err != nil {
				return err
			}
		}
		struck = append(struck, pids...)
	}
}

// killButPatience bounds KillBut where the group cannot be frozen and keeps forking.
const killButPatience = 2 * time.Second

// strike kills once. The first round relies on cgroup.kill, which no fork escapes. Later
// rounds also signal each process, because one may be in the v1 hierarchies only.
func (g *Group) strike(round int) error {
	done, err := g.killV2()
	if err != nil {
		return err
	}
	if !done || round > 0 {
		g.holdStill()
		err = g.signalAll()
	}
	g.letGo() // a frozen process that was not signalled would not even die with its pid namespace
	return err
}

// letGo thaws without waiting: a process frozen on v1 dies only when thawed, one frozen on
// v2 dies frozen. Sub-cgroups are thawed too, because a process that could write to the
// group may have frozen one. If a tree above is frozen (the pause of the agent that started
// this one), v1's processes leave it; if another ancestor is, this has no effect, and the final
// error names the survivors.
func (g *Group) letGo() {
	top, name, value := g.paths["freezer"], "freezer.state", "THAWED"
	if top == "" {
		top, name, value = g.paths[unified], "cgroup.freeze", "0"
	}
	if top == "" {
		return
	}
	_ = walkDir(top, func(dir string) error {
		_ = write(dir, name, value)
		return nil
	})
	if dir := g.paths["freezer"]; isTree(filepath.Dir(dir)) {
		leaveFrozen(dir)
	}
}

// leaveFrozen moves the processes of an agent out of a frozen tree on v1, which thaws them. They
// have been sent SIGKILL, and execute nothing more.
func leaveFrozen(dir string) {
	if above, err := readFields(dir, "freezer.parent_freezing"); err != nil || len(above) != 1 || above[0] != "1" {
		return
	}
	_ = walkDir(dir, func(from string) error {
		pids, err := readPids(from)
		for _, pid := range pids {
			_ = write(agentsDir(dir), "cgroup.procs", strconv.Itoa(pid)) // one that has ended needs none of it
		}
		return err
	})
}

// killV2 writes cgroup.kill where it exists: since Linux 5.14, not in a threaded cgroup.
func (g *Group) killV2() (done bool, err error) {
	dir := g.paths[unified]
	if dir == "" {
		return false, nil
	}
	err = write(dir, "cgroup.kill", "1")
	if isGone(err) || errors.Is(err, unix.EOPNOTSUPP) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("cannot kill: %w", err)
	}
	return true, nil
}

// holdStill prevents forks while the processes are signalled one by one: by a freeze, or
// else by a pids limit of 0. A group that supports neither takes many rounds.
func (g *Group) holdStill() {
	if g.freeze(roundPatience) == nil {
		return
	}
	if dir := g.paths["pids"]; dir != "" {
		_ = write(dir, "pids.max", "0")
	}
}

// signalAll sends SIGKILL to each process now in the group and to no other.
func (g *Group) signalAll() error {
	pids, err := g.members()
	if err != nil {
		return fmt.Errorf("cannot list processes to kill: %w", err)
	}
	for some := range slices.Chunk(pids, batch) {
		if err := g.signal(some); err != nil {
			return err
		}
	}
	return nil
}

// signal opens pidfds first and then lists the members again. A pid that was reused between
// the first listing and the open is not a member any more, and one that is reused later is
// not what the pidfd refers to.
func (g *Group) signal(pids []int) error {
	opened := map[int]*pidfd.Process{}
	defer func() {
		for _, process := range opened {
			process.Close()
		}
	}()
	for _, pid := range pids {
		process, err := pidfd.Open(pid)
		if pidfd.Gone(err) || pid == 0 {
			continue
		}
		if err != nil {
			return fmt.Errorf("cannot open process %d to kill it: %w", pid, err)
		}
		opened[pid] = process
	}
	still, err := g.members()
	if err != nil {
		return fmt.Errorf("cannot list processes to kill: %w", err)
	}
	for pid, process := range opened {
		if !slices.Contains(still, pid) {
			continue
		}
		if err := process.Signal(unix.SIGKILL); err != nil {
			return fmt.Errorf("cannot kill process %d: %w", pid, err)
		}
	}
	return nil
}

// awaitExits returns when all of pids have ended, or roundPatience is over, or ctx ended.
// It always waits a little: a pid that stays listed after its process ended, or that cannot
// be opened, must not make Kill spin. By now a pid may belong to another process; then this
// waits for that one, roundPatience at most.
func awaitExits(ctx context.Context, pids []int) {
	round, cancel := context.WithTimeout(ctx, roundPatience)
	defer cancel()
	waited := false
	for _, pid := range pids {
		process, err := pidfd.Open(pid)
		if err != nil {
			continue
		}
		ended := process.Ended() // most have ended during the wait for the first
		if !ended {
			waited = true
			ended = process.Wait(round)
		}
		process.Close()
		if !ended {
			return
		}
	}
	if !waited {
		pauseFor(ctx, time.Millisecond)
	}
}

// described bounds the processes that a message names.
const described = 8

// describe names processes and where in the kernel they wait, to find out why they do not end.
func describe(pids []int) string {
	names := []string{}
	for _, pid := range pids[:min(len(pids), described)] {
		names = append(names, Describe(pid))
	}
	if more := len(pids) - described; more > 0 {
		names = append(names, fmt.Sprintf("%d more", more))
	}
	if len(names) == 0 {
		return "no process"
	}
	return strings.Join(names, ", ")
}

// Describe names a process or thread, its state, and where in the kernel it waits.
func Describe(pid int) string {
	proc := filepath.Join("/proc", strconv.Itoa(pid))
	stat, err := os.ReadFile(filepath.Join(proc, "stat"))
	if err != nil {
		return fmt.Sprintf("process %d (not visible here)", pid)
	}
	// proc(5): "pid (comm) state …"; the name may hold anything, even ") ".
	text := string(stat)
	open, end := strings.IndexByte(text, '('), strings.LastIndexByte(text, ')')
	if open < 0 || end+2 >= len(text) {
		return fmt.Sprintf("process %d", pid)
	}
	about := fmt.Sprintf("process %d (%s, state %c", pid, text[open+1:end], text[end+2])
	// wchan is "0" for a process that does not wait, and where it may not be read
	// (proc(5)).
	if wchan, err := os.ReadFile(filepath.Join(proc, "wchan")); err == nil && len(wchan) > 1 {
		about += ", in " + string(wchan)
	}
	return about + ")"
}

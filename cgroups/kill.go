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

// roundPatience is how long killed processes get to end before Kill strikes
// again. A process with much memory to give back takes longer and is not
// harmed by being killed twice.
const roundPatience = 100 * time.Millisecond

// batch is how many pidfds Kill holds at once: clove may not open many files.
const batch = 128

// Kill ends every process of the group, sub-cgroups included, and returns when
// none is left (zombies, which only their parent can take away, do not count).
// It wins against processes that fork, and ends frozen and stopped ones. When
// ctx ends first, the error names who is left and where in the kernel it hangs.
func (g *Group) Kill(ctx context.Context) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	for round := 0; ; round++ {
		pids, err := g.members()
		if err != nil {
			return fmt.Errorf("cannot list processes to kill: %w", err)
		}
		if len(pids) == 0 {
			g.letGo() // who was frozen may have been killed by another: the group would look paused for ever
			return nil
		}
		if ctx.Err() != nil {
			return fmt.Errorf("cannot kill %s: %w", describe(pids), ctx.Err())
		}
		if err := g.strike(round); err != nil {
			return err
		}
		awaitExits(ctx, pids)
	}
}

// KillBut sends SIGKILL to every process of the group but keep, and does not wait
// for their end. When it returns without an error none of them executes any more,
// nor what they would have forked.
func (g *Group) KillBut(keep int) error {
	// Nobody waits until all stand still: who has no CPU time left gets no further
	// than the freezer when it has some again, and its children neither.
	_ = g.freeze(0)
	defer g.letGo()
	struck := []int{keep}
	for deadline := time.Now().Add(killButPatience); ; {
		pids, err := g.members()
		if err != nil {
			return fmt.Errorf("cannot list processes to kill: %w", err)
		}
		// Who has the signal forks no more (fork(2)), so there is an end to it.
		pids = slices.DeleteFunc(pids, func(pid int) bool { return slices.Contains(struck, pid) })
		switch {
		case len(pids) == 0:
			return nil
		case time.Now().After(deadline):
			return fmt.Errorf("cannot kill %s: there are always more", describe(pids))
		}
		for some := range slices.Chunk(pids, batch) {
			if err := g.signal(some); err != nil {
				return err
			}
		}
		struck = append(struck, pids...)
	}
}

// killButPatience bounds KillBut where the group cannot be frozen and forks on.
const killButPatience = 2 * time.Second

// strike kills once. The first round trusts cgroup.kill, which no fork escapes;
// later ones do not, because a process may be in the v1 hierarchies only.
func (g *Group) strike(round int) error {
	done, err := g.killV2()
	if err != nil {
		return err
	}
	if !done || round > 0 {
		g.holdStill()
		err = g.signalAll()
	}
	g.letGo() // also whom it could not signal: frozen, not even the end of their namespace would end them
	return err
}

// letGo thaws without a wait: a process frozen by v1 dies only when thawed, one
// frozen by v2 as it is. Sub-cgroups may be frozen by themselves, where who was
// in the group could write to it. Where a cgroup above is frozen it cannot work,
// and the survivors are named in the end.
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
}

// killV2 writes cgroup.kill, where there is one (5.14 and later; not in a
// threaded cgroup).
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

// holdStill keeps the group from forking while its processes are signalled one
// by one: frozen, or else with a pids limit that the first fork exceeds. A
// group that can do neither, or not fully, is signalled in many rounds.
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

// signal opens first and looks again before it strikes: a pid that was reused
// by a stranger between the listing and the opening is then no member, and one
// that is reused later is not what the pidfd stands for.
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

// awaitExits returns when all of pids have ended, or roundPatience is over, or
// ctx ended. It never returns at once: a pid that is listed although its
// process ended, or that cannot be opened, must not make Kill spin.
func awaitExits(ctx context.Context, pids []int) {
	round, cancel := context.WithTimeout(ctx, roundPatience)
	defer cancel()
	waited := false
	for _, pid := range pids {
		process, err := pidfd.Open(pid)
		if err != nil {
			continue
		}
		ended := process.Ended() // most have ended while the first was waited for
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

// described is how many processes a message names.
const described = 8

// describe names processes and where they hang, for a person who must find out
// why they do not end.
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

// Describe names a process or thread and where it hangs.
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
	if wchan, err := os.ReadFile(filepath.Join(proc, "wchan")); err == nil && len(wchan) > 1 {
		about += ", in " + string(wchan)
	}
	return about + ")"
}

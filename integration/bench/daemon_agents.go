package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	cloveclient "clove.run/clove/client"
	"clove.run/clove/policies"
)

// agents starts many agents, measures what they cost while they idle, and ends them.
func (d *cloved) agents(t *table) (err error) {
	c, err := d.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	// Agents outlive cloved, so they are ended here whatever happens.
	defer func() { err = errors.Join(err, removeAll(c)) }()
	alone, err := residentKiB([]int{d.cmd.Process.Pid}, "Pss:")
	if err != nil {
		return err
	}
	began := time.Now()
	runs, err := d.startMany(liveAgents)
	if err != nil {
		return err
	}
	rate := float64(len(runs)) / time.Since(began).Seconds()
	t.single(fmt.Sprintf("starts of %d agents, %d at once", liveAgents, startsAhead), "", unitAnswers, rate, "50")
	if err := d.held(t, runs, alone[0]); err != nil {
		return err
	}
	return listTimes(t, c)
}

// idleSpec is the spec of a small agent at the standard level that does nothing.
func idleSpec(name string) agent.Spec {
	spec := policies.Standard()
	spec.ID, spec.Name, spec.Detached = agent.NewID(), name, true
	spec.Command, spec.Env = []string{"/bin/sleep", "3600"}, []string{"PATH=/usr/bin:/bin", "HOME=/home/agent"}
	spec.Limits.MemoryBytes, spec.Limits.MemorySwapBytes, spec.Limits.DiskBytes = 32<<20, 32<<20, 64<<20
	return spec
}

// startMany lets startsAhead clients start agents, each in turn, until there are number
// of them.
func (d *cloved) startMany(number int) (runs []agent.Run, err error) {
	var mu sync.Mutex // guards runs and err
	var all sync.WaitGroup
	for first := range startsAhead {
		c, derr := d.dial()
		if derr != nil {
			return nil, derr
		}
		all.Go(func() {
			defer c.Close()
			for i := first; i < number; i += startsAhead {
				run, serr := startOne(c, idleSpec(fmt.Sprintf("live-%d", i)))
				mu.Lock()
				runs, err = append(runs, run), errors.Join(err, serr)
				mu.Unlock()
				if serr != nil {
					return
				}
			}
		})
	}
	all.Wait()
	return runs, err
}

// startOne returns when the agent runs. A start that has to wait in the queue is
// answered before, so its events are followed.
func startOne(c *cloveclient.Client, spec agent.Spec) (agent.Run, error) {
	watching, enough := context.WithTimeout(context.Background(), time.Minute)
	defer enough()
	result, err := cloveclient.Do(watching, c, methods.RunStart, api.StartParams{Spec: spec})
	if err != nil || result.Run.State == agent.StateRunning {
		return result.Run, err
	}
	_, err = cloveclient.Each(watching, c, methods.EventFollow, api.EventParams{Run: spec.Name, After: new(uint64), Follow: true}, func(note api.EventNote) error {
		if note.Event != nil && note.Event.State == agent.StateRunning {
			enough()
		}
		return nil
	})
	// Any other error came before the agent ran.
	if !errors.Is(err, context.Canceled) {
		return result.Run, fmt.Errorf("%s does not run: %w", spec.Name, err)
	}
	result, err = cloveclient.Do(context.Background(), c, methods.RunGet, api.RunParams{Run: spec.Name})
	return result.Run, err
}

// held is the host's memory for each agent: its supervisor, its clove-init, and its
// share of what cloved has grown by. alone is cloved's size before, in KiB.
func (d *cloved) held(t *table, runs []agent.Run, alone float64) error {
	var supervisors, inits []int
	for _, run := range runs {
		if run.Lease == nil {
			return fmt.Errorf("%s does not run any more", run.Spec.Name)
		}
		supervisors, inits = append(supervisors, run.Lease.SupervisorPID), append(inits, run.PID)
	}
	mine, err := residentKiB(supervisors, "Pss:")
	if err != nil {
		return err
	}
	theirs, err := residentKiB(inits, "Pss:")
	if err != nil {
		return err
	}
	grown, err := residentKiB([]int{d.cmd.Process.Pid}, "Pss:")
	if err != nil {
		return err
	}
	// cloved's growth is divided, because no part of it belongs to one agent.
	growth := (grown[0] - alone) / float64(len(runs))
	whole := make([]float64, len(runs))
	for i := range runs {
		whole[i] = (mine[i] + theirs[i] + growth) / 1024
	}
	t.several(fmt.Sprintf("host memory beside each of %d idle agents", len(runs)), unitMiB, whole, "4")
	t.several("  of that, its supervisor", unitKiB, mine, "")
	t.several("  of that, clove-init", unitKiB, theirs, "")
	t.single("  of that, growth of cloved", "", unitKiB, growth, "")
	t.single("cloved without agents", "", unitKiB, alone, "")
	return nil
}

// listCalls is enough for a 99th percentile that is not one of the worst three.
const listCalls = 300

// listTimes measures the call of `clove ps` without the command around it.
func listTimes(t *table, c *cloveclient.Client) error {
	var took []float64
	for range listCalls {
		began := time.Now()
		if _, err := cloveclient.Collect(cloveclient.All(context.Background(), c, methods.RunList, api.ListParams{Brief: true})); err != nil {
			return err
		}
		took = append(took, millis(time.Since(began)))
	}
	t.several(fmt.Sprintf("run.list of %d agents", liveAgents), unitMS, took, "5")
	return nil
}

// removeAll ends and removes every run, by eight calls at a time.
func removeAll(c *cloveclient.Client) error {
	listed, err := cloveclient.Collect(cloveclient.All(context.Background(), c, methods.RunList, api.ListParams{All: true, Brief: true}))
	if err != nil {
		return err
	}
	var all sync.WaitGroup
	failed := make(chan error, len(listed)+1)
	for part := range slices.Chunk(listed, max(1, (len(listed)+7)/8)) {
		all.Go(func() {
			for _, one := range part {
				failed <- cloveclient.Perform(context.Background(), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: string(one.Run.Spec.ID)}, Force: true})
			}
		})
	}
	all.Wait()
	close(failed)
	for ferr := range failed {
		err = errors.Join(err, ferr)
	}
	return err
}

// residentKiB is one line of each process's smaps_rollup, in KiB, in the order of pids.
func residentKiB(pids []int, key string) (values []float64, err error) {
	for _, pid := range pids {
		text, err := os.ReadFile(filepath.Join("/proc", strconv.Itoa(pid), "smaps_rollup"))
		if err != nil {
			return nil, err
		}
		kib, err := rollup(text, key)
		if err != nil {
			return nil, err
		}
		values = append(values, float64(kib))
	}
	return values, nil
}

package main

import (
	"context"
	"fmt"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	cloveclient "clove.run/clove/client"
)

// socketAgents idle with a socket, and as many without one.
const socketAgents = 20

// socketMemory is what the socket adds to an idle agent: of the host's memory, for its
// supervisor, its gate and clove-init, and what cloved grows by.
func (d *cloved) socketMemory(t *table) error {
	c, err := d.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	without, err := d.idleMemory(c, "without", agent.Kernel{})
	if err != nil {
		return err
	}
	with, err := d.idleMemory(c, "with", agent.Kernel{Socket: true})
	if err != nil {
		return err
	}
	const what = "host memory of an idle agent"
	t.single(what, "without a socket", unitMiB, without, "")
	t.single(what, "with a socket", unitMiB, with, "")
	t.single(what, "what the socket adds", unitMiB, with-without, "4")
	return nil
}

// idleMemory is the mean of several agents, in MiB. It ends them.
func (d *cloved) idleMemory(c *cloveclient.Client, name string, has agent.Kernel) (mean float64, err error) {
	before, err := residentKiB([]int{d.cmd.Process.Pid}, "Pss:")
	if err != nil {
		return 0, err
	}
	var pids []int
	defer func() {
		if rerr := removeNamed(c, name); err == nil {
			err = rerr
		}
	}()
	for i := range socketAgents {
		run, err := startOne(c, idleShare(fmt.Sprintf("%s-%d", name, i), has))
		if err != nil {
			return 0, err
		}
		pids = append(pids, besidesAgent(run)...)
	}
	all, err := residentKiB(append(pids, d.cmd.Process.Pid), "Pss:")
	if err != nil {
		return 0, err
	}
	sum := -before[0]
	for _, kib := range all {
		sum += kib
	}
	return sum / 1024 / socketAgents, nil
}

func idleShare(name string, has agent.Kernel) agent.Spec {
	spec := idleSpec(name)
	spec.Kernel = has
	return spec
}

// besidesAgent are the supervisor with all its descendants but the agent's own processes.
// clove-init is none of these.
func besidesAgent(run agent.Run) (pids []int) {
	own := map[int]bool{}
	for _, pid := range family(run.PID)[1:] {
		own[pid] = true
	}
	for _, pid := range family(run.Lease.SupervisorPID) {
		if !own[pid] {
			pids = append(pids, pid)
		}
	}
	return pids
}

// removeNamed ends and removes the agents that socketMemory has started.
func removeNamed(c *cloveclient.Client, name string) (err error) {
	for i := range socketAgents {
		if rerr := cloveclient.Perform(context.Background(), c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: fmt.Sprintf("%s-%d", name, i)}, Force: true}); err == nil {
			err = rerr
		}
	}
	return err
}

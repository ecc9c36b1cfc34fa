// Package cgroups has the layout of agents' cgroups on this host and the limits that it
// can enforce, and reads, freezes, kills and removes the cgroups of one agent.
//
// Theory of operation. Detect reads /proc/self/mountinfo and /proc/self/cgroup once
// and derives the Mode exactly as libcontainer does. libcontainer moves the processes
// and writes the limits, so both must mean the same directories:
//
//	v2      /sys/fs/cgroup/clove.slice/clove-agents.service/agents/NAME
//	hybrid  /sys/fs/cgroup/<controller>/<clove's own cgroup>/clove/NAME
//	        and, for cgroup.kill, /sys/fs/cgroup/unified/clove/NAME
//	v1      as hybrid, without the last
//
// Host.Missing says why a controller cannot be enforced, and the remedy. Host.Prepare
// enables the controllers for the parent of all agents (in a container on v2 it first
// moves the container's processes into a leaf). Host.Place names an agent's
// directories before they exist, so that a lease can record them first. A Group is
// opened from those paths. It needs neither the Host nor a live supervisor, so a later
// clove can clean up after one that was killed. The empty parent stays, as a systemd
// slice does.
//
// The parent of all agents has a memory limit (LimitTogether), below what the host has:
// agents that were promised the same memory end one another there, before the kernel looks
// for a victim among all processes of the host. The supervisors are beside that cgroup.
// On v1 an agent is below the cgroup of the clove that started it, so there can be several
// such parents, each with the limit.
//
// On v2 most figures come from containerd/cgroups, per controller; the group's
// cgroup.controllers distinguishes an absent figure from 0. Its v1 reader fails as a
// whole when one file is missing (no swap accounting), reports absent figures as 0,
// and knows neither peaks nor pids.events. So the v1 files, and the v2 files that the
// library does not know, are read here.
//
// Killing must work against a fork bomb. Kill writes cgroup.kill where it exists (a
// hybrid host has it in the unified tree), otherwise it freezes, sends SIGKILL and
// thaws. Then it waits on pidfds, and repeats until every hierarchy is empty.
//
// It refuses to write limits of agents, which libcontainer does, with three exceptions:
// the limit on v1's socket buffers, which libcontainer does not have; memory.reclaim
// before a limit is lowered; and a pids limit of 0 for a group that is being killed
// and cannot be frozen. It refuses to open a directory that has neither the form of
// an agent's nor, for OpenBundle, lies below the cgroup mounts. It never reports a
// figure that this host does not have.
//
// Decision 11 (docs/decisions) says why v1 is supported with the same limits.
package cgroups

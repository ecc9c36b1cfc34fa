// Package cgroups knows where agents live in this host's cgroups, what those
// can hold an agent to, and how to read, freeze, kill and remove one.
//
// Theory of operation. Detect reads /proc/self/mountinfo and
// /proc/self/cgroup once and decides the Mode just as libcontainer does,
// because libcontainer moves the processes and writes the limits, and both
// must mean the same directories:
//
//	v2      /sys/fs/cgroup/clove.slice/clove-agents.service/NAME
//	hybrid  /sys/fs/cgroup/<controller>/<clove's own cgroup>/clove/NAME
//	        and, for cgroup.kill, /sys/fs/cgroup/unified/clove/NAME
//	v1      as hybrid, without the last
//
// Host.Missing says why a controller cannot be enforced and what to do about
// it. Host.Prepare makes the parent of all agents able to hold them (in a
// container on v2 it moves the container's processes into a leaf first), and
// Host.Place names an agent's directories before they exist, so that a lease
// can record them first. A Group is opened from those paths; it needs neither
// the Host nor a live supervisor, which is how leftovers of a killed clove are
// cleaned up. The empty parent stays, as a systemd slice does.
//
// Figures come from containerd/cgroups on v2, which gives them per controller;
// the group's cgroup.controllers then tells what is absent from what is 0. Its
// v1 reader fails as a whole when one file is missing (no swap accounting),
// cannot tell absent from 0, and knows neither peaks nor pids.events, so v1
// files, and the v2 files that it does not know, are read here.
//
// Killing must win against a fork bomb: cgroup.kill where there is one (a
// hybrid host has it in the unified tree), else freeze, SIGKILL, thaw; then
// wait on pidfds, and again until every hierarchy is empty.
//
// It refuses to write limits (libcontainer does; only a group that is being
// killed and cannot be frozen is forbidden to fork), to touch a directory that
// does not have the form of an agent's, and to report a figure that this host
// does not have.
package cgroups

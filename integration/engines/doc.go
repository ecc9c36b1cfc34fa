// Package engines runs real engines over clove-oci: Docker, Podman, containerd's
// ctr, and containerd's CRI as a kubelet uses it. Each row of a table also runs over
// runc, so that a difference between the two runtimes is found, and not one between
// two machines.
//
// The engines come from the machine's own packages (integration/install.sh),
// and none of the machine's own daemons is used. Each test runs again, with
// the same name, as the only program of an isolated environment, its world:
//
//	go test: TestDocker                 the machine: lock, residue, verdict
//	  testdata/container.sh             namespaces, overlay over /, cgroup
//	    tini                            process 1; reaps what shims leave
//	      engines.test: TestDocker      the table
//	        dockerd, containerd, shims  data on a tmpfs at /run
//
// Bridges, packet filters, mounts and sockets are therefore the world's, and
// the cgroup namespace's root keeps every container below the world's cgroup.
// The end of process 1 ends everything at once, whatever an engine has left behind; the
// test on the machine then looks for residue.
//
// Images are archives that the tests make of the machine's static busybox, so that
// nothing is downloaded. A script of a table waits for an engine's event, never for a
// fixed time: the same test must pass on a slow machine.
//
// A sample of the tests (go test -short) runs every third row. The virtual machine
// (pure cgroup v2, interpreted) runs the rows that a cgroup decides, and
// one test that has the virtual machine's own systemd make the pods' cgroups.
//
// It refuses to run an engine outside of a world or that virtual machine.
package engines

// Package engines runs real engines over clove-oci, each row of a table also
// over runc, so that a difference is seen as one: Docker, Podman, containerd's
// ctr, and containerd's CRI as a kubelet uses it.
//
// The engines come from the machine's own packages (integration/install.sh),
// and none of the machine's own daemons is asked. Each test runs again, with
// the same name, as the only program of a world of its own:
//
//	go test: TestDocker                 the machine: lock, residue, verdict
//	  testdata/container.sh             namespaces, overlay over /, cgroup
//	    tini                            process 1; reaps what shims leave
//	      engines.test: TestDocker      the table
//	        dockerd, containerd, shims  data on a tmpfs at /run
//
// Bridges, packet filters, mounts and sockets are therefore the world's, and
// the cgroup namespace's root keeps every container below the world's cgroup.
// The end of process 1 ends everything at once, whatever an engine forgot; the
// machine's side then looks for what stayed.
//
// Images are archives written here from the machine's static busybox. Nothing
// is pulled. A script of a table waits for an engine's event, never for a time.
//
// A sample of the tests (go test -short) runs every third row. The virtual machine
// (pure cgroup v2, interpreted) runs the rows that a cgroup decides, and
// one test that has the virtual machine's own systemd make the pods' cgroups.
//
// It refuses to run an engine outside of a world or that virtual machine.
package engines

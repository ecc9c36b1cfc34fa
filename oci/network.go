package oci

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// procSysNetwork is all of /proc/sys and not just /proc/sys/net: engines have /proc/sys
// among their read-only paths already, and a path below it would be a second mount.
const procSysNetwork = "/proc/sys"

// taken are the capabilities that are removed: with them a process bypasses rules (raw and
// packet sockets, packet marks) or changes them.
var taken = []string{"CAP_NET_ADMIN", "CAP_NET_RAW"}

// undoing are the capabilities that make a process root on the node, or nearly so. They are
// refused and not removed: a container that asks for one does not work without it.
var undoing = []string{"CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_BPF",
	"CAP_SYS_BOOT",        // kexec_load(2): another kernel
	"CAP_SYS_PTRACE",      // control of every process that it sees, in other networks too
	"CAP_DAC_READ_SEARCH", // open_by_handle_at(2): the files of the host, keys among them
}

// Guarded returns the network rules that annotations ask for, for the container with this
// id; Network is empty if they ask for none. member reports that the container is one of a
// pod, whose sandbox brings the rules. Directory, PID and Start are left to the caller.
func Guarded(annotations map[string]string, id string) (g agent.Guard, member bool, err error) {
	rules, err := For(annotations, id)
	if err != nil {
		return g, false, err
	}
	return agent.Guard{Network: rules.Network, Rules: rules.Egress}, rules.Member, nil
}

// HoldsPod reports whether a container is the sandbox of a pod, or may be one: it returns
// true if the roles contradict each other. create refuses that, so such a container was not
// created by this clove-oci.
func HoldsPod(annotations map[string]string, id string) bool {
	role, err := roleOf(annotations, id)
	return err != nil || role == podSandbox
}

// TightenProcess takes from a further process of a container what the annotations took from
// the first one, in place. It refuses a process that could change the rules
// (KindUnenforceable). An engine's exec brings its own list of capabilities, so the first
// process's config does not protect.
func TightenProcess(annotations map[string]string, p *specs.Process) error {
	rules, err := Parse(annotations)
	if err != nil || rules.Network == "" {
		return err
	}
	return tightenCapabilities(p)
}

// tightenNetwork takes from the container what could change its network rules, and refuses
// what cannot be taken. The rules themselves are set up by start, because some engines make
// the network only after create.
func (r Rules) tightenNetwork(spec *specs.Spec) error {
	if r.Network == "" {
		return nil
	}
	network := namespaceOf(spec, specs.NetworkNamespace)
	switch {
	case network == nil:
		return unguarded("the container is in the host's network", "give it a network of its own")
	// No path: libcontainer makes the namespace, after the user namespace that then owns
	// it.
	case network.Path == "" && namespaceOf(spec, specs.UserNamespace) != nil:
		return unguarded("the container's user namespace would own its network, and its root could change the rules",
			"omit one of the two")
	case len(spec.Linux.NetDevices) > 0:
		// The rules see IP packets, and a device need not make any: everybody may use a
		// CAN bus in its namespace, a tap's owner writes packets that seem to have begun
		// outside, and an RDMA device's queues are behind no hook of the kernel's.
		return unguarded("linux.netDevices would bring "+strings.Join(slices.Sorted(maps.Keys(spec.Linux.NetDevices)), ", ")+
			" into its network, and the rules cannot hold what goes by such a device",
			"omit one of the two, or have the engine's network (CNI) make the interface")
	}
	// Root in the container can write there without any capability unless the path is
	// read-only. tcp_fwmark_accept, for one, gives accepted sockets the mark of the
	// client's packet.
	if !slices.Contains(spec.Linux.ReadonlyPaths, procSysNetwork) {
		spec.Linux.ReadonlyPaths = append(spec.Linux.ReadonlyPaths, procSysNetwork)
	}
	return tightenCapabilities(spec.Process)
}

// namespaceOf returns nil if the container shares the caller's namespace of that kind.
func namespaceOf(spec *specs.Spec, kind specs.LinuxNamespaceType) *specs.LinuxNamespace {
	if spec.Linux == nil {
		return nil
	}
	for i, n := range spec.Linux.Namespaces {
		if n.Type == kind {
			return &spec.Linux.Namespaces[i]
		}
	}
	return nil
}

// tightenCapabilities works on all five sets: a capability left in one of them can come
// back at an execve(2).
func tightenCapabilities(p *specs.Process) error {
	if p == nil || p.Capabilities == nil {
		return nil // none at all
	}
	all := p.Capabilities
	for _, set := range []*[]string{&all.Bounding, &all.Effective, &all.Inheritable, &all.Permitted, &all.Ambient} {
		for _, name := range *set {
			if slices.Contains(undoing, strings.ToUpper(name)) {
				return unguarded(fmt.Sprintf("the process would have %s, and could change the rules", name),
					"omit the capability; a privileged container cannot have network rules")
			}
		}
		// A clone: DeleteFunc would change the caller's list in place.
		*set = slices.DeleteFunc(slices.Clone(*set), func(name string) bool { return slices.Contains(taken, strings.ToUpper(name)) })
	}
	return nil
}

// unguarded is the error for a container whose rules could not be enforced. It always names
// the mode's annotation, which every network rule needs.
func unguarded(message, hint string) error {
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "annotation " + AnnotationNetworkMode, Message: message, Hint: hint}
}

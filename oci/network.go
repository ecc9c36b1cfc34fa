package oci

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
)

// procSysNetwork is all of /proc/sys, which engines have among their read-only
// paths: net alone would be a second mount below theirs.
const procSysNetwork = "/proc/sys"

// taken are the capabilities that go around rules or change them.
var taken = []string{"CAP_NET_ADMIN", "CAP_NET_RAW"}

// undoing are the capabilities of who is root on the node, or nearly so:
// without them a container would not work, and with them no rule holds.
var undoing = []string{"CAP_SYS_ADMIN", "CAP_SYS_MODULE", "CAP_SYS_RAWIO", "CAP_BPF",
	"CAP_SYS_BOOT",        // kexec_load(2): another kernel
	"CAP_SYS_PTRACE",      // whatever process it sees, in other networks too
	"CAP_DAC_READ_SEARCH", // open_by_handle_at(2): the files of the host, keys among them
}

// Guarded returns what annotations ask of the network of the container with this
// id: nothing where Network is empty. member is one of a pod, whose rules hold
// already. Directory and process are the caller's to fill in.
func Guarded(annotations map[string]string, id string) (g agent.Guard, member bool, err error) {
	rules, err := For(annotations, id)
	if err != nil {
		return g, false, err
	}
	return agent.Guard{Network: rules.Network, Rules: rules.Egress}, rules.Member, nil
}

// HoldsPod reports whether a container is the sandbox of a pod, whose network it
// keeps for the others.
// Where the engines disagree it might be: it was not created then, or by others.
func HoldsPod(annotations map[string]string, id string) bool {
	role, err := roleOf(annotations, id)
	return err != nil || role == podSandbox
}

// TightenProcess takes from one more process of a container what its
// annotations took from the first, in place, or refuses one that could undo rules
// (KindUnenforceable). Its capabilities may be the engine's own list.
func TightenProcess(annotations map[string]string, p *specs.Process) error {
	rules, err := Parse(annotations)
	if err != nil || rules.Network == "" {
		return err
	}
	return tightenCapabilities(p)
}

// tightenNetwork leaves the container nothing that its rules could be changed
// with. That they hold is start's to see to: some engines make the network only then.
func (r Rules) tightenNetwork(spec *specs.Spec) error {
	if r.Network == "" {
		return nil
	}
	network := namespaceOf(spec, specs.NetworkNamespace)
	switch {
	case network == nil:
		return unguarded("the container is in the host's network", "give it a network of its own")
	case network.Path == "" && namespaceOf(spec, specs.UserNamespace) != nil:
		return unguarded("the container's user namespace would own its network, and its root could change the rules",
			"leave one of the two away")
	case len(spec.Linux.NetDevices) > 0:
		// The rules see IP packets, and a device need not make any: everybody may use a
		// CAN bus in its namespace, a tap's owner writes packets that seem to have begun
		// outside, and an RDMA device's queues are behind no hook of the kernel's.
		return unguarded("linux.netDevices would bring "+strings.Join(slices.Sorted(maps.Keys(spec.Linux.NetDevices)), ", ")+
			" into its network, and the rules cannot hold what goes by such a device",
			"leave one of the two away, or have the engine's network (CNI) make the interface")
	}
	// Root may write there without any capability, where the engine does not forbid it.
	if !slices.Contains(spec.Linux.ReadonlyPaths, procSysNetwork) {
		spec.Linux.ReadonlyPaths = append(spec.Linux.ReadonlyPaths, procSysNetwork)
	}
	return tightenCapabilities(spec.Process)
}

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

func tightenCapabilities(p *specs.Process) error {
	if p == nil || p.Capabilities == nil {
		return nil // none at all
	}
	all := p.Capabilities
	for _, set := range []*[]string{&all.Bounding, &all.Effective, &all.Inheritable, &all.Permitted, &all.Ambient} {
		for _, name := range *set {
			if slices.Contains(undoing, strings.ToUpper(name)) {
				return unguarded(fmt.Sprintf("the process would have %s, and could change the rules", name),
					"leave the capability away; a privileged container cannot have network rules")
			}
		}
		*set = slices.DeleteFunc(slices.Clone(*set), func(name string) bool { return slices.Contains(taken, strings.ToUpper(name)) })
	}
	return nil
}

func unguarded(message, hint string) error {
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "annotation " + AnnotationNetworkMode, Message: message, Hint: hint}
}

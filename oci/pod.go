package oci

import (
	"fmt"
	"maps"
	"slices"

	"clove.run/clove/agent"
)

// The roles of a container in its pod, in the words of the engines.
const (
	podSandbox = "sandbox"   // holds the namespaces, the network among them, and no agent
	podMember  = "container" // uses the sandbox's network
)

// podKeys are the annotations in which an engine writes a container's role in its pod, and
// the id of the pod's sandbox.
type podKeys struct{ role, sandbox string }

// podEngines are containerd's CRI plugin and CRI-O. Podman writes CRI-O's keys.
var podEngines = []podKeys{
	{"io.kubernetes.cri.container-type", "io.kubernetes.cri.sandbox-id"},
	{"io.kubernetes.cri-o.ContainerType", "io.kubernetes.cri-o.SandboxID"},
}

// For returns the rules for the container with this id. Engines give a pod's annotations to
// its sandbox too, in which no agent runs, so only the network rules apply to that. The
// error is Parse's, or says that the roles of two engines contradict each other
// (KindInvalid).
func For(annotations map[string]string, id string) (Rules, error) {
	// Without annotations of clove's, contradicting roles are none of clove's business.
	rules, err := Parse(annotations)
	if err != nil || !slices.ContainsFunc(slices.Collect(maps.Keys(annotations)), ours) {
		return rules, err
	}
	role, err := roleOf(annotations, id)
	switch {
	case err != nil:
		return Rules{}, err
	case role == podSandbox:
		return Rules{Network: rules.Network, Egress: rules.Egress}, nil
	}
	rules.Member = role == podMember
	return rules, nil
}

// roleOf is empty for a container of no pod, and for one whose role is not proven.
// Annotations of images and users arrive in the same way as the engine's, and a role
// exempts from rules. The proof is the sandbox's id: an image would have to name the
// container's own id, which the engine generates after the image was written.
func roleOf(annotations map[string]string, id string) (string, error) {
	var role string
	var said, saidBy podKeys
	for _, keys := range podEngines {
		says := podKeys{annotations[keys.role], annotations[keys.sandbox]}
		if says.role == "" {
			continue
		}
		// Keys of two engines that say the same are no contradiction.
		if saidBy.role != "" && says != said {
			return "", &agent.Error{Kind: agent.KindInvalid, Step: "annotation " + keys.role,
				Message: fmt.Sprintf("with %s it says %q of %q, and %s says %q of %q", keys.sandbox, says.role, says.sandbox, saidBy.role, said.role, said.sandbox),
				Hint:    "leave both to the engine: take the other one out of the pod, the image or the command line"}
		}
		said, saidBy = says, keys
		if says.sandbox != "" && (says.role == podSandbox) == (says.sandbox == id) {
			role = says.role
		}
	}
	return role, nil
}

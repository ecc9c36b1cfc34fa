package oci

import (
	"fmt"
	"maps"
	"slices"

	"clove.run/clove/agent"
)

// What a container is to its pod, in the words of the engines.
const (
	podSandbox = "sandbox"   // holds the namespaces, the network among them, and no agent
	podMember  = "container" // uses the sandbox's network
)

// podKeys are where an engine writes what a container is to its pod, and the id
// of the pod's sandbox.
type podKeys struct{ role, sandbox string }

// podEngines are containerd's CRI plugin, and CRI-O, whose keys Podman writes too.
var podEngines = []podKeys{
	{"io.kubernetes.cri.container-type", "io.kubernetes.cri.sandbox-id"},
	{"io.kubernetes.cri-o.ContainerType", "io.kubernetes.cri-o.SandboxID"},
}

// For is what annotations ask for the container with this id. A pod's sandbox
// has its pod's annotations and no agent in it, so that only the network's count.
// The error is Parse's, or says that two engines' roles contradict (KindInvalid).
func For(annotations map[string]string, id string) (Rules, error) {
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

// roleOf is empty for a container of no pod, and for one that only says that it
// is of one: an image's or a user's annotations come by the same way as the
// engine's, and a role takes rules away. To be taken for a sandbox they would have
// to name the container's id, which the engine makes when they are written already.
func roleOf(annotations map[string]string, id string) (string, error) {
	var role string
	var said, saidBy podKeys
	for _, keys := range podEngines {
		says := podKeys{annotations[keys.role], annotations[keys.sandbox]}
		if says.role == "" {
			continue
		}
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

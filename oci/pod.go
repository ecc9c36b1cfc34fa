package oci

// What a container is to its pod, in the annotations of containerd and CRI-O.
const (
	podSandbox = "sandbox"   // holds the namespaces, the network among them, and no agent
	podMember  = "container" // uses the sandbox's network
)

// roleOf is empty for a container of no pod.
func roleOf(annotations map[string]string) string {
	for _, key := range []string{"io.kubernetes.cri.container-type", "io.kubernetes.cri-o.ContainerType"} {
		if role := annotations[key]; role != "" {
			return role
		}
	}
	return ""
}

package oci

import (
	"slices"

	"clove.run/clove/agent"
)

// Asked is what one annotation asks for, by the keys of a policy document.
type Asked struct {
	Annotation string
	Places     []string
}

// Asked returns what the annotations ask for as a run's spec, in which nothing else has a
// value, and each annotation with the places that it decides. The engine decides the
// places that they do not name.
func (r Rules) Asked() (spec agent.Spec, all []Asked) {
	spec = agent.Spec{Limits: r.Limits, Network: r.Network, Egress: agent.Egress{Rules: r.Egress}}
	if r.Limits.MemorySwapBytes == 0 {
		spec.Limits.MemorySwapBytes = r.Limits.MemoryBytes
	}
	hasAllow := slices.ContainsFunc(r.Egress, func(rule agent.EgressRule) bool { return !rule.Deny })
	for _, row := range []struct {
		given bool
		Asked
	}{
		{r.Limits.MemoryBytes != 0, Asked{AnnotationMemory, []string{"limits.memory"}}},
		{r.Limits.MemorySwapBytes != 0, Asked{AnnotationMemorySwap, []string{"limits.memory_swap"}}},
		{r.Limits.Pids != 0, Asked{AnnotationPids, []string{"limits.pids"}}},
		{r.Limits.CPUs != 0, Asked{AnnotationCPUs, []string{"limits.cpus"}}},
		{r.Limits.WallClock != 0, Asked{AnnotationTimeout, []string{"limits.timeout"}}},
		{r.Network != "", Asked{AnnotationNetworkMode, []string{"network.mode"}}},
		{hasAllow, Asked{AnnotationNetworkAllow, []string{"network.allow"}}},
		{r.Network != "", Asked{AnnotationNetworkDeny, []string{"network.deny"}}},
	} {
		if row.given {
			all = append(all, row.Asked)
		}
	}
	return spec, all
}

package main

import (
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
	"clove.run/clove/runtime/container"
)

// TestOnlyWhatWaitsIsHeld: a container whose state changed after start looked at
// it is not let through, unless nothing is asked for it.
func TestOnlyWhatWaitsIsHeld(t *testing.T) {
	rules := map[string]string{oci.AnnotationNetworkMode: agent.NetworkNone}
	for _, status := range []string{"created", "running", "paused", "stopped"} {
		order, _, err := ordered(container.State{Status: status, Annotations: rules})
		if (err == nil) != (status == "created") || order.Network != agent.NetworkNone {
			t.Errorf("%s: %+v, %v", status, order, err)
		}
		if order, _, err := ordered(container.State{Status: status}); err != nil || order.Network != "" {
			t.Errorf("%s, without rules: %+v, %v", status, order, err)
		}
	}
	if _, _, err := ordered(container.State{Status: "created", Annotations: map[string]string{oci.AnnotationNetworkMode: "most"}}); err == nil {
		t.Error("a mode that is none is taken")
	}
}

package budgets

import (
	"fmt"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/budget"
)

// A run spends from its own account, and from those of its name, its namespace and its owner.
func TestAccountsOfARun(t *testing.T) {
	t.Parallel()
	run := agent.Run{Spec: agent.Spec{ID: "8d1f6a0c4b7e2953", Name: "worker", Kernel: agent.Kernel{Namespace: "acme/research"}}, Owner: agent.Owner{UID: 1000}}
	if got := fmt.Sprint(keysOf(run)); got != "[1000/run:8d1f6a0c4b7e2953 1000/name:worker 1000/ns:acme/research 1000]" {
		t.Error(got)
	}
	for key, want := range map[budget.Key]bool{"1000": true, "1000/ns:acme/research": true, "1000/ns:acme": false, "1001": false} {
		if got := below("7", key)(run); got != want {
			t.Errorf("%s: %t", key, got)
		}
	}
	if below() != nil {
		t.Error("no account concerns runs")
	}
}

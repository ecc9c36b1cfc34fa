package runtime

import (
	"context"
	"encoding/json"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// joiner is a Kernel that answers the calls before a start whose streams are joined to mail.
type joiner struct {
	Kernel            // none: no other method is called
	grants, registers string
	calls             []string
}

func (j *joiner) Call(_ context.Context, _ agent.ID, method string, text json.RawMessage) (json.RawMessage, error) {
	var p struct{ What, Name string }
	if err := json.Unmarshal(text, &p); err != nil {
		return nil, err
	}
	j.calls = append(j.calls, strings.TrimSpace(method+" "+p.What+p.Name))
	switch {
	case method == agents.GrantCheck.Name:
		return json.Marshal(api.GrantCheckResult{Allowed: p.What == j.grants, Reason: "no grant covers it"})
	case method == agents.NameRegister.Name && p.Name == j.registers:
		return json.RawMessage("{}"), nil
	}
	return nil, api.Failure(api.CodeDenied, "the kernel's hint", "refused")
}

// A start checks the right to send, and registers the name of its input, before anything runs. Without them it is
// refused, with a hint; with them the same start goes on (the control).
func TestAStartIsJoinedToMail(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		kernel            agent.Kernel
		grants, registers string
		step, hint, calls string
	}{
		{kernel: agent.Kernel{StdoutTo: "mail:a"}, step: "--stdout-to", hint: "add --grant send:a", calls: "grant.check send:a"},
		{kernel: agent.Kernel{StdoutTo: "mail:a"}, grants: "send:b", step: "--stdout-to", hint: "add --grant send:a", calls: "grant.check send:a"},
		{kernel: agent.Kernel{StdoutTo: "mail:a,json"}, grants: "send:a", calls: "grant.check send:a"},
		{kernel: agent.Kernel{StdinFrom: "mail:a"}, step: "--stdin-from", hint: "the kernel's hint", calls: "name.register a"},
		{kernel: agent.Kernel{StdinFrom: "mail:a"}, registers: "a", calls: "name.register a"},
		{kernel: agent.Kernel{StdinFrom: "mail:own"}}, // a run has its own name
		{kernel: agent.Kernel{StdoutTo: "mail:a", StdinFrom: "mail:b"}, grants: "send:a", registers: "b", calls: "grant.check send:a, name.register b"},
		{},
	} {
		k := &joiner{grants: row.grants, registers: row.registers}
		err := (&share{kernel: k, ctx: t.Context()}).joinMail(agent.Spec{ID: "1", Name: "own", Kernel: row.kernel})
		var step, hint string
		if err != nil {
			step, hint = agent.FailureOf(err).Step, agent.FailureOf(err).Hint
		}
		if calls := strings.Join(k.calls, ", "); step != row.step || hint != row.hint || calls != row.calls {
			t.Errorf("%+v with %q and %q: %v, hint %q, calls %q", row.kernel, row.grants, row.registers, err, hint, calls)
		}
	}
}

package people

import (
	"context"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// Agents are those that this server has started: others of the user are out of reach.
func TestAgents(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	if got := r.use("spawn_agent", `{"agent":"helper","prompt":"do it"}`); got.Failed {
		t.Fatalf("%+v", got)
	}
	spec := r.cloved.started[0]
	if !spec.Foreground || !spec.Remove {
		t.Errorf("%+v", spec)
	}
	if got := r.use("list_agents", ""); !strings.Contains(got.Text, "helper: helps") || !strings.Contains(got.Text, spec.Name+" (helper): at work") {
		t.Errorf("%q", got.Text)
	}
	r.refused("ask_agent", `{"agent":"`+spec.Name+`","prompt":"another"}`, "takes no other")
	if got := r.use("ask_agent", `{"agent":"`+spec.Name+`","timeout_seconds":1}`); got.Failed || !strings.Contains(got.Text, "still at work") {
		t.Errorf("%+v", got)
	}
	r.endRun(0, end{agent.Record{Status: agent.StatusExited}, "the answer"}, r.agents[0].held)
	if got := r.use("ask_agent", `{"agent":"`+spec.Name+`"}`); got.Failed || got.Text != "the answer" {
		t.Errorf("%+v", got)
	}
	r.use("spawn_agent", `{"agent":"helper"}`)
	second := r.cloved.started[1]
	if got := r.use("kill_agent", `{"agent":"`+second.Name+`"}`); got.Failed || len(r.cloved.removed) != 1 || r.cloved.removed[0] != string(second.ID) {
		t.Errorf("%+v, %q", got, r.cloved.removed)
	}
	if got := r.use("kill_agent", `{"agent":"`+second.Name+`"}`); got.Failed || len(r.cloved.removed) != 1 {
		t.Errorf("again: %+v", got)
	}
}

// An agent that fails says so, with what it wrote.
func TestAnAgentThatFails(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	r.use("spawn_agent", `{"agent":"helper"}`)
	r.endRun(0, end{agent.Record{Status: agent.StatusOOM, ExitCode: 137}, "half"}, r.agents[0].held)
	if got := r.use("ask_agent", `{"agent":"`+r.cloved.started[0].Name+`"}`); got.Text != "half" || !strings.Contains(got.Error, "memory limit reached") {
		t.Errorf("%+v", got)
	}
}

// So many live at once, and all end with the server.
func TestAgentsAreBoundedAndEnd(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	for range maxAgents {
		if got := r.use("spawn_agent", `{"agent":"helper"}`); got.Failed {
			t.Fatalf("%+v", got)
		}
	}
	r.refused("spawn_agent", `{"agent":"helper"}`, "8 agents are at work")
	agents := r.agents
	must(t, r.Close(context.Background()))
	for _, one := range agents {
		select {
		case <-one.done:
		case <-time.After(patience):
			t.Fatal("one goes on")
		}
	}
	if len(r.cloved.removed) != maxAgents {
		t.Errorf("%q", r.cloved.removed)
	}
}

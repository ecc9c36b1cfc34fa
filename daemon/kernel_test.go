package daemon

import (
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/store"
)

// While cloved serves, only cloved opens kernel.db: it copies and checks it for other
// commands.
func TestKernelIsClovedsAlone(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	path := r.d.options.Paths.Kernel()
	var copied string
	t.Run("serving", func(t *testing.T) {
		r.t = t
		c := r.serve()
		if _, err := store.OpenKernel(path, 10*time.Millisecond); agent.KindOf(err) != agent.KindBusy || err == nil {
			t.Errorf("a second opener: %v", err)
		}
		if found, err := client.Do(within(t), c, methods.Check, api.Nothing{}); err != nil || len(found.Problems) != 0 {
			t.Errorf("%q, %v", found.Problems, err)
		}
		copied = filepath.Join(r.dir, "copy")
		must(t, client.Perform(within(t), c, methods.Backup, api.BackupParams{File: copied}))
		if err := client.Perform(within(t), c, methods.Backup, api.BackupParams{File: copied}); agent.KindOf(err) != agent.KindConflict {
			t.Errorf("it replaces a file: %v", err)
		}
		if err := client.Perform(within(t), c, methods.Backup, api.BackupParams{File: "copy"}); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("a path of cloved's own directory: %v", err)
		}
	})
	for _, path := range []string{copied, path} { // closed again, and both intact
		k, err := store.OpenKernel(path, patience)
		must(t, err)
		if problems, err := k.Check(); err != nil || problems != nil {
			t.Errorf("%s: %q, %v", path, problems, err)
		}
		must(t, k.Close())
	}
	if info, err := os.Stat(copied); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
}

// agentSide is the gate of a run's agent, whose calls cloved serves.
type agentSide struct {
	t    testing.TB
	gate *channel.Conn
	last uint64
}

// channel is a channel, as a supervisor makes it; both ends are closed with the test.
func (r *rig) channel() (served, gate *channel.Conn) {
	r.t.Helper()
	served, gate, err := channel.Both()
	must(r.t, err)
	r.t.Cleanup(func() { gate.Close(); served.Close() })
	return served, gate
}

// agent has cloved serve the calls of a run's agent, as the run's supervisor does.
func (r *rig) agent(c *client.Client, run agent.ID) *agentSide {
	r.t.Helper()
	served, gate := r.channel()
	ended := make(chan error, 1)
	go func() { ended <- client.NewShare(c).Serve(context.Background(), run, served.File()) }()
	r.t.Cleanup(func() {
		must(r.t, gate.Close())
		must(r.t, served.Close())
		if err := <-ended; agent.KindOf(err) != agent.KindBusy { // cloved has ended the connection
			r.t.Errorf("serving ended with %v", err)
		}
	})
	return &agentSide{t: r.t, gate: gate}
}

// call makes a call as the agent.
func (a *agentSide) call(method string, params json.RawMessage) (json.RawMessage, error) {
	a.t.Helper()
	a.last++
	must(a.t, a.gate.Send(channel.FromGate{Call: &channel.Call{Number: a.last, Method: method, Params: params}}))
	must(a.t, a.gate.File().SetReadDeadline(time.Now().Add(patience)))
	var m channel.ToGate
	must(a.t, a.gate.Receive(&m))
	if m.Answer == nil || m.Answer.Number != a.last {
		a.t.Fatalf("%+v", m)
	}
	if m.Answer.Error != nil {
		return nil, m.Answer.Error
	}
	return m.Answer.Result, nil
}

// cloved answers what an agent asks. The agent of a run of root's finds no method
// that is not for agents, and no run but its own; a gate that was taken over can ask for no
// more. The control is root, who finds the same methods and the same run.
func TestAnAgentFindsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	own, other := r.add("own", agent.Owner{}, agent.StateRunning), r.add("other", agent.Owner{}, agent.StateRunning)
	s := r.attached(c, own)
	code := func(err error) api.Code {
		if err == nil {
			return passes
		}
		return api.ErrorOf(err).Code
	}
	walked := 0
	for _, m := range methods.All() {
		for _, name := range []string{"", string(own.Spec.ID), string(other.Spec.ID), "other", "0/other"} {
			params, err := json.Marshal(api.RunParams{Run: name})
			must(t, err)
			_, err = s.call(m.Name, params)
			got := code(err)
			mine := name == "" || name == string(own.Spec.ID)
			switch {
			case !m.ForAgents() && got != api.CodeMethod:
				t.Errorf("an agent finds %s: %v", m.Name, err)
			case m.Access == api.AccessAgent && mine && (got == api.CodeMethod || got == api.CodeDenied):
				t.Errorf("%s of its own: %v", m.Name, err)
			case m.Access == api.AccessAgent && !mine && got != api.CodeNotFound:
				t.Errorf("%s of %q: %v", m.Name, name, err)
			}
			walked++
		}
	}
	if walked < 5*len(methods.All()) {
		t.Errorf("%d calls", walked)
	}
	for _, run := range []agent.Run{own, other} {
		a, err := client.Do(within(t), c, agents.AgentGet, api.RunParams{Run: run.Spec.Name})
		must(t, err)
		if a.ID != run.Spec.ID {
			t.Errorf("%+v", a)
		}
	}
	_, err := client.Do(within(t), c, methods.KernelCall, api.KernelCallParams{Run: agent.NewID(), Method: agents.AgentGet.Name})
	wantCode(t, err, api.CodeNotFound)
}

// The longest line of an agent is answered, and not waited for.
func TestTheLongestCallOfAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	run := r.add("own", agent.Owner{}, agent.StateRunning)
	s := r.attached(r.serve(), run)
	for _, length := range []int{1 << 10, api.MaxAgentLine} {
		params, err := json.Marshal(api.GrantCheckParams{What: "tool:" + strings.Repeat("x", length)})
		must(t, err)
		_, err = s.call(agents.GrantCheck.Name, params)
		wantCode(t, err, api.CodeParams)
	}
}

// The calls of an agent are served only if there is such a run, and only on a channel that comes
// along. That others than root are refused is in the access matrix.
func TestServingAnAgentIsRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	run := r.add("own", agent.Owner{}, agent.StateRunning)
	served, _ := r.channel()
	wantCode(t, client.NewShare(c).Serve(within(t), agent.NewID(), served.File()), api.CodeNotFound)
	session, err := client.Open(within(t), c, methods.KernelServe, api.KernelServeParams{Run: run.Spec.ID})
	must(t, err)
	defer session.Close()
	must(t, session.Detach()) // a line in place of the descriptor
	wantCode(t, session.Answer(within(t), nil, nil), api.CodeRequest)
}

// When cloved ends, the supervisor learns of it, and later messages on the channel are its own.
func TestServingEndsWithCloved(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	run := r.add("own", agent.Owner{}, agent.StateRunning)
	served, gate := r.channel()
	ended := make(chan error, 1)
	go func() { ended <- client.NewShare(c).Serve(within(t), run.Spec.ID, served.File()) }()
	a := &agentSide{t: t, gate: gate}
	_, err := a.call(agents.AgentGet.Name, nil)
	must(t, err)
	r.drain()
	if err := <-ended; agent.KindOf(err) != agent.KindBusy {
		t.Errorf("%v", err)
	}
	must(t, gate.Send(channel.FromGate{Cancel: 7}))
	var m channel.FromGate
	must(t, served.Receive(&m))
	if m.Cancel != 7 {
		t.Errorf("%+v", m)
	}
}

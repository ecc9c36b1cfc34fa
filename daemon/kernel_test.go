package daemon

import (
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

// A supervisor passes on what an agent asks. The agent of a run of root's finds no method
// that is not for agents, and no run but its own; a gate that was taken over can ask for no
// more. The control is root, who finds the same methods and the same run.
func TestAnAgentFindsOnlyItsOwn(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c := r.serve()
	own, other := r.add("own", agent.Owner{}, agent.StateRunning), r.add("other", agent.Owner{}, agent.StateRunning)
	s := client.NewShare(c)
	t.Cleanup(func() { s.Close() })
	must(t, s.Attach(within(t), own, func(api.Standing) {}))
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
			_, err = s.Call(within(t), own.Spec.ID, m.Name, params)
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
	_, err := s.Call(within(t), agent.NewID(), agents.AgentGet.Name, nil)
	wantCode(t, err, api.CodeNotFound)
}

// An agent's line that is too long with cloved's envelope is answered, and not waited for.
func TestTheLongestCallOfAnAgent(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	s := client.NewShare(r.serve())
	t.Cleanup(func() { s.Close() })
	run := r.add("own", agent.Owner{}, agent.StateRunning)
	must(t, s.Attach(within(t), run, func(api.Standing) {}))
	for length, want := range map[int]api.Code{1 << 10: api.CodeParams, api.MaxAgentLine: api.CodeTooLarge} {
		params, err := json.Marshal(api.GrantCheckParams{What: "tool:" + strings.Repeat("x", length)})
		must(t, err)
		_, err = s.Call(within(t), run.Spec.ID, agents.GrantCheck.Name, params)
		wantCode(t, err, want)
	}
}

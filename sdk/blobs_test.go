package sdk

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel"
	"clove.run/clove/kernel/blobs"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// serveBlobs makes a desk whose calls a Kernel with blobs serves, as cloved does: without cloved there are none.
func serveBlobs(t *testing.T) *desk {
	t.Helper()
	dir := t.TempDir()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	file, err := store.OpenKernel(filepath.Join(dir, "kernel.db"), time.Minute, kernel.Tables()...)
	must(err)
	log, err := audit.Open(filepath.Join(dir, "audit"), audit.RunOptions())
	must(err)
	run := agent.Run{Spec: agent.Spec{ID: agent.NewID(), Name: "worker", Kernel: agent.Kernel{Socket: true, Grants: []string{"state:/namespace/big:rw"}}}, State: agent.StateRunning,
		Owner: agent.Owner{UID: uint32(os.Getuid())}}
	k, err := kernel.New(kernel.Config{Store: file, Log: log, LogDir: filepath.Join(dir, "audit"), Clock: time.Now, Blobs: blobs.Dir(filepath.Join(dir, "blobs")),
		Note: func(agent.RunEvent) {}, Run: func(id agent.ID) (agent.Run, bool) { return run, id == run.Spec.ID }})
	must(err)
	t.Cleanup(func() {
		for _, err := range []error{k.Close(), log.Close(), file.Close()} {
			if err != nil {
				t.Error(err)
			}
		}
	})
	calls, end, err := channel.Pair()
	must(err)
	d := &desk{path: filepath.Join(dir, "agent.sock"), calls: calls}
	must(k.Attach(t.Context(), run, true, func(api.Standing) {}))
	d.call = func(method string, params json.RawMessage) (json.RawMessage, error) {
		return k.Call(t.Context(), service.Caller{Run: run, Agent: true, UID: run.Owner.UID}, service.Request{Method: method, Text: params})
	}
	d.open(t, channel.New(end))
	return d
}

// A body that is larger than a call goes in parts, and comes back as it was, in both languages: as an upload, and by
// a key that runs share. The controls are in the programs: a digest that nothing refers to, and no content.
func TestBlobs(t *testing.T) {
	t.Parallel()
	const want = "3000001 bytes, the same: true, by the key: true\nof none: not-found, empty: too-large\n"
	t.Run("typescript", func(t *testing.T) {
		t.Parallel()
		d := serveBlobs(t)
		if got := program(t, ".", []string{"CLOVE_AGENT_SOCKET=" + d.path}, "node", withNode(t, "testdata/blobs.mjs")); got != want {
			t.Errorf("it printed\n%s", got)
		}
	})
	t.Run("python", func(t *testing.T) {
		t.Parallel()
		d := serveBlobs(t)
		if got := python(t, []string{"PYTHONPATH=.", "CLOVE_AGENT_SOCKET=" + d.path}, "../testdata/blobs.py"); got != want {
			t.Errorf("it printed\n%s", got)
		}
	})
}

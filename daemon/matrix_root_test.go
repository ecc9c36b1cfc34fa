//go:build root

package daemon

import (
	"clove.run/clove/kernel/service"
	"context"
	"encoding/json"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/internal/testhost"
)

// The identities of the matrix, as the kernel reports them to cloved.
const matrixGroup = 64060

var identities = []struct {
	name string
	id   nsthread.Identity
}{
	{"root", nsthread.Identity{}},
	{"owner", nsthread.Identity{UID: 64001, GID: 64001, Groups: []uint32{matrixGroup}}},
	{"member", nsthread.Identity{UID: 64002, GID: matrixGroup}},
	{"stranger", nsthread.Identity{UID: 64003, GID: 64003, Groups: []uint32{64061}}},
}

// TestMatrixOverConnections calls each method as each identity over a real connection, so the
// kernel reports the caller.
func TestMatrixOverConnections(t *testing.T) {
	testhost.Root(t)
	r := newRig(t, nil)
	path := r.serveGroup(matrixGroup)
	threads := map[string]*nsthread.Thread{}
	for _, who := range identities {
		thread := asCaller(t, who.id)
		defer thread.Close()
		threads[who.name] = thread
	}
	for _, m := range methods.All() {
		expected := matrix[m.Name]
		for i, who := range identities {
			want := []api.Code{expected.root, expected.owner, expected.member, api.CodeDenied}[i]
			run := r.add("run-"+string(agent.NewID()), agent.Owner{UID: 64001, GID: 64001}, agent.StateEnded)
			params := r.shares(run).Replace(paramsFor(t, expected, run.Name().String()))
			got := codeOf(askAs(t, threads[who.name], path, m.Name, params))
			refused := got == api.CodeDenied || got == api.CodeNotFound || got == api.CodeMethod || got == api.CodeParams || got == api.CodeInternal
			if want == passes && refused || want != passes && got != want {
				t.Errorf("%s as %s: code %d, want %d", m.Name, who.name, got, want)
			}
			_ = r.records.with(forgetRun(run.Spec.ID))
		}
	}
}

// shares gives a run a budget, a reservation and a grant, and returns what puts their ids
// into the matrix's parameters.
func (r *rig) shares(run agent.Run) *strings.Replacer {
	r.t.Helper()
	run.Spec.Kernel = agent.Kernel{Budgets: []string{"reviews=10"}, Grants: []string{"tool:fetch"}}
	k := r.d.shared.kernel
	ctx, leave := context.WithCancel(context.Background())
	defer leave()
	must(r.t, k.Attach(ctx, run, true, func(api.Standing) {}))
	own := service.Caller{Run: run, Agent: true, UID: run.Owner.UID}
	text, err := k.Call(ctx, own, service.Request{Method: agents.BudgetReserve.Name, Text: json.RawMessage(`{"amounts":{"reviews":1}}`)})
	must(r.t, err)
	var reserved api.BudgetReserveResult
	must(r.t, json.Unmarshal(text, &reserved))
	text, err = k.Call(ctx, own, service.Request{Method: agents.GrantList.Name})
	must(r.t, err)
	var held api.GrantListResult
	must(r.t, json.Unmarshal(text, &held))
	return strings.NewReplacer("RUNNAME", run.Spec.Name, `"GRANT"`, `"`+held.Grants[0].ID+`"`, `"RESERVATION"`, `"`+reserved.Reservation+`"`, `"ID"`, `"`+string(run.Spec.ID)+`"`)
}

// asCaller makes a thread whose connections are the caller's: the kernel reports the effective
// ids.
func asCaller(t *testing.T, who nsthread.Identity) *nsthread.Thread {
	t.Helper()
	thread, err := nsthread.Start(0)
	must(t, err)
	must(t, thread.Do(func() error {
		groups := append([]uint32{who.GID}, who.Groups...)
		_, _, errno := unix.RawSyscall(unix.SYS_SETGROUPS, uintptr(len(groups)), uintptr(unsafe.Pointer(&groups[0])), 0)
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESGID, uintptr(who.GID), uintptr(who.GID), uintptr(who.GID))
		}
		if errno == 0 {
			_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, uintptr(who.UID), uintptr(who.UID), uintptr(who.UID))
		}
		if errno != 0 {
			return errno
		}
		return nil
	}))
	return thread
}

// askAs makes one request on a connection that the thread's identity opens. A standing is
// the answer of kernel.attach, which ends with its connection.
func askAs(t *testing.T, who *nsthread.Thread, path, method, params string) (answer rpc.Message) {
	t.Helper()
	var conn *rpc.Conn
	must(t, who.Do(func() (err error) { conn, err = rpc.Dial(context.Background(), path); return err }))
	defer conn.Close()
	must(t, conn.SetDeadline(time.Now().Add(patience)))
	_, _ = conn.Write([]byte(`{"jsonrpc":"2.0","id":1,"method":"` + method + `","params":` + params + "}\n"))
	for {
		m, err := conn.Receive()
		if err != nil {
			t.Fatalf("%s: %v", method, err)
		}
		if m.Method == "" || m.Method == api.NoteStanding {
			return m
		}
	}
}

// paramsFor returns valid parameters for a row's method.
func paramsFor(t *testing.T, r row, run string) string {
	switch {
	case r.params == "-start":
		text, err := json.Marshal(api.StartParams{Spec: spec("new-" + string(agent.NewID()))})
		must(t, err)
		return string(text)
	case r.params != "" && r.params[0] == '-':
		return "{" + r.params[1:] + "}"
	}
	return `{"run":"` + run + `"` + r.params + "}"
}

// serveGroup serves the rig to a group, on a socket that everybody may open: here only the
// credentials that the kernel reports keep strangers out.
func (r *rig) serveGroup(group int) (path string) {
	r.t.Helper()
	dir, err := os.MkdirTemp("", "clove-matrix")
	must(r.t, err)
	must(r.t, os.Chmod(dir, 0o711))
	path = filepath.Join(dir, "s")
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
	must(r.t, err)
	must(r.t, os.Chmod(path, 0o666))
	alive, stop := context.WithCancel(context.Background())
	done, ready := make(chan error, 1), make(chan struct{})
	go func() { done <- r.d.Serve(alive, listener, group, func() { close(ready) }) }()
	<-ready
	r.t.Cleanup(func() {
		stop()
		must(r.t, <-done)
		must(r.t, os.RemoveAll(dir))
	})
	return path
}

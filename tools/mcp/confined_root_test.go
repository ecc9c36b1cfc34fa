//go:build root

package mcp

import (
	"context"
	"fmt"
	"os"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"clove.run/clove/api"
	"clove.run/clove/internal/confine/parent"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/tools/link"
)

// confined is the rig of the real program, in a process without rights.
func confined(t *testing.T, set func(*rig)) *rig {
	t.Helper()
	conn, file, err := packet.Pair()
	must(t, err)
	process, err := parent.Start(testhost.Binary(t, "clove-mcp"), 64123, file)
	file.Close()
	must(t, err)
	t.Cleanup(func() {
		conn.Close()
		must(t, process.Kill())
		if t.Failed() {
			t.Log(process.Failure())
		}
	})
	r := &rig{t: t, conn: conn, ended: make(chan string, 8), calls: make(chan called, 4096), serve: link.Serve{Name: "worker", Title: "tools of a test", Kernel: true}}
	r.defaults()
	set(r)
	var m link.FromDoor
	files, err := conn.Receive(&m)
	packet.CloseAll(files)
	must(t, err)
	if !m.Ready {
		t.Fatalf("%+v", m)
	}
	go r.control()
	r.pid = process.Pid()
	r.listen()
	return r
}

// The program serves both revisions, over HTTP and at pipes, in a process without rights: no call of the SDK
// or of Go's runtime is one that its filter forbids, which would end it.
func TestTheProgramIsConfined(t *testing.T) {
	testhost.Root(t)
	r := confined(t, func(r *rig) {
		kernel("send:*", "audit:team")(r)
		r.answer = func(c called, p api.ToolCallParams) (api.ToolCallResult, error) {
			if p.Tool == "held" {
				<-c.ctx.Done()
			}
			return api.ToolCallResult{Text: string(p.Arguments)}, nil
		}
	})
	for _, revision := range revisions {
		in, out := r.stdio()
		for how, session := range map[string]*sdk.ClientSession{
			"HTTP":  r.connect(revision, nil),
			"pipes": connect(t, revision, nil, &sdk.IOTransport{Reader: out, Writer: in}),
		} {
			list, err := session.ListTools(t.Context(), nil)
			must(t, err)
			if !strings.Contains(names(list), "echo clove_agent_get") {
				t.Errorf("%s, %s: %s", revision, how, names(list))
			}
			for i := range 50 { // also timers, threads and the collector of garbage
				text := strings.Repeat("a", 40<<10)
				if got := texts(call(t, session, "echo", fmt.Sprintf(`{"text":"%d%s"}`, i, text))); len(got) < len(text) {
					t.Fatalf("%s, %s: %.200q", revision, how, got)
				}
			}
			if got := texts(call(t, session, "clove_mail_send", `{"to":"a","body":1}`)); !strings.Contains(got, "m1") {
				t.Errorf("%s, %s: %s", revision, how, got)
			}
			ctx, cancel := context.WithCancel(t.Context())
			params := &sdk.CallToolParams{Name: "held"}
			params.SetProgressToken("token")
			go session.CallTool(ctx, params)
			var held called
			for !strings.Contains(held.params, `"held"`) {
				held = r.next("tool.call")
			}
			cancel()
			held.wantCancelled(t, revision+" "+how)
			session.Close()
		}
		if name := await(t, r.ended); name != "terminal" {
			t.Error(name)
		}
	}
	if status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", r.pid)); err != nil || !strings.Contains(string(status), "Seccomp:\t2") ||
		!strings.Contains(string(status), "CapEff:\t0000000000000000") || !strings.Contains(string(status), "Uid:\t64123\t64123") {
		t.Errorf("%v: %s", err, status)
	}
}

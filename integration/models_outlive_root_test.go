//go:build root

package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// streaming prints each piece of a stream as it comes, how the stream ends, and asks once more.
const streaming = `
def stream(model):
    request = urllib.request.Request(base + "/v1/chat/completions", json.dumps({"messages": said, "model": model, "stream": True, "max_tokens": 50}).encode(), {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as answer:
            for line in answer:
                if line.startswith(b"data: "): print(line[6:].decode().strip(), flush=True)
            print("whole", flush=True)
    except Exception as e: print("broken", type(e).__name__, flush=True)
`

// parts are the events of a stream, the last with what was used.
var parts = []string{`{"model":"small-1","choices":[{"index":0,"delta":{"content":"one"}}]}`, `{"model":"small-1","choices":[{"index":0,"delta":{"content":"two"},"finish_reason":"stop"}]}`,
	`{"model":"small-1","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":5,"total_tokens":12}}`}

// A stream comes to its end when cloved is killed or restarted, and the next cloved settles what
// it used: neither nothing nor all that was reserved. Calls of before and after stand in the
// record. The control: it breaks off where clove-upstream is killed, and costs all.
func TestStreamsOutliveCloved(t *testing.T) {
	for name, row := range map[string]struct {
		end     func(d *cloved)
		control bool
	}{
		"killed":    {func(d *cloved) { d.stop(unix.SIGKILL); d.serve() }, false},
		"restarted": {func(d *cloved) { d.stop(unix.SIGTERM); d.serve() }, false},
		"control": {func(d *cloved) {
			for _, pid := range childrenNamed(t, d.cmd.Process.Pid, "clove-upstream") {
				_ = unix.Kill(pid, unix.SIGKILL)
			}
		}, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := newProvider(t)
			release := make(chan struct{})
			p.answers(func(w http.ResponseWriter, r *http.Request) {
				body, _ := io.ReadAll(r.Body)
				if !strings.Contains(string(body), `"stream":true`) {
					io.WriteString(w, answerOfProvider)
					return
				}
				w.Header().Set("Content-Type", "text/event-stream")
				for i, part := range parts {
					io.WriteString(w, "data: "+part+"\n\n")
					_ = http.NewResponseController(w).Flush()
					if i == 0 {
						<-release
					}
				}
				io.WriteString(w, "data: [DONE]\n\n")
			})
			d := p.serves(t)
			again := `print(ask(base + "/v1/chat/completions", {"messages": said, "max_tokens": 50}, "small")[:3], flush=True)`
			r := d.start([]string{"--network=none", "--model=small", "--budget=tokens=10000", "--name=streams"},
				append(modelAgent(streaming, again, `stream("small")`, "input()", again), "input()")...)
			want := func(start string) {
				t.Helper()
				if line, err := r.stdout.ReadString('\n'); err != nil || !strings.HasPrefix(line, start) {
					t.Fatalf("%q, %v, want %s", line, err, start)
				}
			}
			want("200")
			want(parts[0])
			before := journalsOf(t, d)
			if reserved := reservedBy(t, d, "streams"); len(before) != 2 || reserved < 50 {
				t.Fatalf("control: %v, %d tokens are reserved", before, reserved)
			}
			row.end(d)
			close(release)
			if row.control {
				want(`{"error"`)
				want("") // the stream's end
			} else {
				want(parts[1])
				want("[DONE]") // clove asked for what was used, and the agent did not
				want("whole")
			}
			until(t, "the stream is settled", func() bool { return reservedBy(t, d, "streams") == 0 })
			until(t, "the processes of before have ended", func() bool {
				return row.control || !slices.ContainsFunc(journalsOf(t, d), func(name string) bool { return slices.Contains(before, name) })
			})
			if _, err := io.WriteString(r.stdin, "\n"); err != nil {
				t.Fatal(err)
			}
			want("200")
			r.stdin.Close()
			used := r.wait().record.Usage.Models
			if row.control {
				if len(used) != 1 || used[0].Calls != 3 || used[0].TokensOut != 60 || used[0].Failed != 1 {
					t.Errorf("control: %+v", used)
				}
				return
			}
			if len(used) != 1 || used[0] != (agent.ModelUse{Model: "small", Calls: 3, TokensIn: 21, TokensOut: 15, CostMicros: 51}) {
				t.Errorf("%+v", used)
			}
		})
	}
}

// reservedBy is how many tokens of a run are reserved.
func reservedBy(t *testing.T, d *cloved, run string) int64 {
	t.Helper()
	var page struct{ Budgets []api.Budget }
	if err := json.Unmarshal([]byte(d.ok("show", run, "--json")), &page); err != nil {
		t.Fatal(err)
	}
	for _, b := range page.Budgets {
		if b.Dimension == "tokens" {
			return b.Reserved
		}
	}
	t.Fatalf("%+v", page)
	return 0
}

// journalsOf are the journals of cloved's processes.
func journalsOf(t *testing.T, d *cloved) []string {
	t.Helper()
	entries, err := os.ReadDir(filepath.Join(d.run, "models"))
	if err != nil && !os.IsNotExist(err) {
		t.Fatal(err)
	}
	var names []string
	for _, e := range entries {
		names = append(names, e.Name())
	}
	return names
}

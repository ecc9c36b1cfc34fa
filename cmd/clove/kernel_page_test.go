package main

import (
	"bufio"
	"encoding/json"
	"maps"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/doctest"
	"clove.run/clove/kernel/budget"
)

func readDocument(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(doctest.Root(t), name))
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// pageLines are the lines of a document that begin so, in a program.
func pageLines(t *testing.T, name string, beginnings ...string) string {
	t.Helper()
	var lines []string
	for line := range strings.Lines(readDocument(t, name)) {
		for _, beginning := range beginnings {
			if strings.HasPrefix(line, "    "+beginning) {
				lines = append(lines, strings.TrimSpace(line))
			}
		}
	}
	if len(lines) != len(beginnings) {
		t.Fatalf("%s has the lines %q", name, lines)
	}
	return strings.Join(lines, "\n")
}

var quotedMethod = regexp.MustCompile("`([a-z]+\\.[a-z_]+)`")

// TestKernelPageHasEveryMethod: the page lists the methods of agents, and each one that it
// names exists.
func TestKernelPageHasEveryMethod(t *testing.T) {
	text := readDocument(t, "docs/kernel.md")
	for _, m := range methods.All() {
		if m.ForAgents() && !strings.Contains(text, "\n| `"+m.Name+"` |") {
			t.Errorf("docs/kernel.md has no row for %s", m.Name)
		}
	}
	known := map[string]bool{api.NoteBudgetWarning: true, api.NoteBudgetPause: true, api.NoteGrantsChanged: true, api.NoteLost: true,
		api.NoteOffer: true, api.NoteAccepted: true, api.NoteChildEnded: true, api.NoteMail: true}
	// The rows of what a child may have are fields of a spec.
	before, fields, _ := strings.Cut(text, "\n## Never more than the parent\n")
	_, after, _ := strings.Cut(fields, "\n## ")
	for _, match := range quotedMethod.FindAllStringSubmatch(before+after+readDocument(t, "docs/budgets.md"), -1) {
		if _, found := methods.Find(match[1]); !found && !known[match[1]] && !strings.HasSuffix(match[1], ".py") && !strings.HasSuffix(match[1], ".yaml") {
			t.Errorf("there is no method %s", match[1])
		}
	}
}

// saysHowFar is how a row of docs/kernel.md begins: nothing else is an answer.
var saysHowFar = regexp.MustCompile(`^(done: .|in part: .*missing: .|no(, and will not come)?: .)`)

// TestKernelPageComparesWithEverything: each method of the other systems has a row, which
// names what does it in clove and how to try that, or says why nothing does.
func TestKernelPageComparesWithEverything(t *testing.T) {
	count := map[string]int{}
	for _, row := range doctest.ComparedRows(t) {
		count[row.System]++
		nothing := strings.HasPrefix(row.Does, "no")
		if !saysHowFar.MatchString(row.Does) {
			t.Errorf("%s: %s says %q, not how far clove does it", row.System, row.Name, row.Does)
		}
		if nothing != (row.Try == doctest.Try{}) || !nothing && !strings.ContainsAny(row.Does, "`[") {
			t.Errorf("%s: %s does not say what does it, or how to try it", row.System, row.Name)
		}
		if _, found := methods.Find(row.Try.Run); row.Try.Where == "api" && !found {
			t.Errorf("there is no method %s", row.Try.Run)
		}
	}
	if !maps.Equal(count, doctest.ComparedSystems) {
		t.Errorf("rows: %v", count)
	}
}

// TestBudgetsPageHasEveryDimension of clove's own.
func TestBudgetsPageHasEveryDimension(t *testing.T) {
	text := readDocument(t, "docs/budgets.md")
	for _, d := range []budget.Dimension{budget.Tokens, budget.TokensIn, budget.TokensOut, budget.TokensCached, budget.CostMicros, budget.ModelCalls, budget.ToolCalls,
		budget.CPU, budget.Wall, budget.WriteBytes, budget.NetBytes, budget.Messages, budget.Children} {
		if !strings.Contains(text, "`"+string(d)+"`") {
			t.Errorf("docs/budgets.md has no %s", d)
		}
	}
}

// TestPagesCallTheSocket runs the programs of the pages against a socket that answers as
// cloved does.
func TestPagesCallTheSocket(t *testing.T) {
	python, err := exec.LookPath("python3")
	if err != nil {
		t.Fatal(err)
	}
	used := int64(0)
	for name, want := range map[string]string{
		"docs/kernel.md":  "{'allowed': True, 'grant': '8d1f6a0c4b7e2953', 'reason': 'grant 8d1f6a0c4b7e2953 allows it'}\n",
		"docs/budgets.md": "800 more: 800 used\n150 more: 950 used\n100 more: 1050 used\n",
	} {
		_, program, _ := strings.Cut(readDocument(t, name), "```python\n")
		program, _, _ = strings.Cut(program, "```")
		path := agentSocket(t, func(method string, params json.RawMessage) any {
			if method == agents.GrantCheck.Name {
				return api.GrantCheckResult{Allowed: true, Grant: "8d1f6a0c4b7e2953", Reason: "grant 8d1f6a0c4b7e2953 allows it"}
			}
			var p api.BudgetChargeParams
			if err := api.DecodeParams(params, &p); err != nil || p.Key == "" {
				t.Errorf("%s, %v", params, err)
			}
			used += p.Amounts["tokens"]
			return api.BudgetResult{Budgets: []api.Budget{{Used: used}}}
		})
		out, err := exec.Command(python, "-c", strings.ReplaceAll(program, "/run/clove/agent.sock", path)).CombinedOutput()
		if err != nil || string(out) != want {
			t.Errorf("%s: %v, %s", name, err, out)
		}
	}
}

// agentSocket answers calls of methods for agents, one connection after the other.
func agentSocket(t *testing.T, answer func(method string, params json.RawMessage) any) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", path)
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	t.Cleanup(func() { listener.Close(); <-done })
	go func() {
		defer close(done)
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			lines := bufio.NewScanner(conn)
			for lines.Scan() {
				var asked struct {
					ID     json.RawMessage
					Method string
					Params json.RawMessage
				}
				if err := json.Unmarshal(lines.Bytes(), &asked); err != nil {
					t.Error(err)
				}
				if m, found := methods.Find(asked.Method); !found || !m.ForAgents() {
					t.Errorf("%q is not for agents", asked.Method)
				}
				_ = json.NewEncoder(conn).Encode(map[string]any{"jsonrpc": "2.0", "id": asked.ID, "result": answer(asked.Method, asked.Params)})
			}
			conn.Close()
		}
	}()
	return path
}

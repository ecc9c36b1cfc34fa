package policies

import (
	"fmt"
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

const teamFirst = "version: 1\nname: paper\n"

// Each mistake in a team is one error with the line, the column and the key, and a hint.
func TestMistakesOfATeam(t *testing.T) {
	t.Parallel()
	many := ""
	for i := range AgentsMost + 1 {
		many += fmt.Sprintf("  a%d: {command: [x]}\n", i)
	}
	for text, want := range map[string]string{
		"":                 "line 1, column 1: agents: a team has at least one agent",
		"agents: {}\n":     "line 3, column 9: agents: a team has at least one agent",
		"agents: [a]\n":    "line 3, column 9: agents: a list stands where a map belongs",
		"agents:\n" + many: "line 4, column 3: agents: there are 65 agents",
		"agents:\n  a: {command: [x], depends_on: {b: ended}}\n  b: {command: [x], depends_on: {c: started}}\n  c: {command: [x], depends_on: {a: ready}}\n": "line 4, column 33: agents.a.depends_on: they would wait for each other: a after b after c after a",
		"agents:\n  a: {command: [x], depends_on: {a: ended}}\n":                         "wait for each other: a after a",
		"agents:\n  ab: {command: [x]}\n  b: {command: [x], depends_on: {abc: ended}}\n": `line 5, column 39: agents.b.depends_on.abc: there is no agent "abc"`,
		"agents:\n  a: {command: [x]}\n  b: {command: [x], depends_on: {a: done}}\n":     `agents.b.depends_on.a: "done" is no condition`,
		"agents:\n  a: {command: [x]}\n  a: {command: [y]}\n":                            `line 5, column 3: agents: the key "a" stands in line 4 already`,
		"agents:\n  a b: {command: [x]}\n":                                               `line 4, column 8: agents.a b: "a b" is no name`,
		"agents:\n  " + strings.Repeat("a", 60) + ": {command: [x]}\n":                   "is no name of an agent",
		"agents:\n  a: {command: [x], detach: true}\n":                                   `line 4, column 21: agents.a: there is no key "detach"`,
		"agents:\n  a: {command: [x], after: [b]}\n":                                     `there is no key "after"`,
		"agents:\n  a: {command: [x], name: b}\n":                                        `there is no key "name"`,
		"agents:\n  a: {command: [x], namespace: b}\n":                                   `there is no key "namespace"`,
		"agents:\n  a: {command: [true]}\n":                                              "line 4, column 16: agents.a.command: true or false stands where text belongs",
		"agents:\n  a: {}\n":                                                             "line 4, column 6: agents.a: it names nothing to run",
		"agents:\n  a: {script: x, command: [x]}\n":                                      "agents.a: it has two of script, command, program and model",
		"agents:\n  a: {file: x.yaml, command: [x]}\n":                                   "line 4, column 13: agents.a.file: beside file only depends_on may stand",
		"agents:\n  a: {file: x.yaml, limits: {pids: 9}}\n":                              "beside file only depends_on",
		"agents:\n  a: {model: echo}\n":                                                  "line 4, column 14: agents.a.model: it is a model, and has no prompt",
		"agents:\n  a: {command: [x], prompt: hi}\n":                                     "agents.a.prompt: a prompt belongs to a model",
		"agents:\n  a: {command: [x], labels: [team=other]}\n":                           "line 4, column 29: agents.a.labels: the label team",
		"namespace: a//b\nagents:\n  a: {command: [x]}\n":                                `line 3, column 12: namespace: "a//b" is not a namespace`,
	} {
		_, err := ParseTeam([]byte(teamFirst + text))
		if err == nil || !strings.Contains(err.Error(), want) || agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%.80q: %v", text, err)
		}
	}
	for _, text := range []string{"agents:\n  a: {command: [x]}\n", "version: 2\nname: a\nagents:\n  a: {command: [x]}\n", "version: 1\nname: a b\nagents:\n  a: {command: [x]}\n"} {
		if _, err := ParseTeam([]byte(text)); err == nil {
			t.Errorf("%q is taken", text)
		}
	}
}

// Control of the mistakes: a sound team is read, each agent behind those that it depends on.
func TestTeamIsRead(t *testing.T) {
	t.Parallel()
	team, err := ParseTeam([]byte(teamFirst + "budgets: [cost=1usd]\nagents:\n  a: {command: [x], depends_on: {c: ended}, limits: {pids: 9}, agent_socket: false}\n  b: {script: y, args: [1x]}\n  c: {file: z.yaml, depends_on: {b: ready}}\n"))
	if err != nil {
		t.Fatal(err)
	}
	if order, circle := team.Order(); !reflect.DeepEqual(order, []string{"b", "c", "a"}) || circle != nil {
		t.Errorf("%q, %q", order, circle)
	}
	a := team.Agents["a"]
	if a.Text(settings.Pids) != "9" || a.Has(settings.Detach) || team.Agents["b"].Args[0] != "1x" || team.Agents["c"].File != "z.yaml" || team.Budgets[0] != "cost=1usd" {
		t.Errorf("%+v", team)
	}
	if !IsTeam([]byte(teamFirst+"agents: {}\n")) || IsTeam([]byte(teamFirst+"command: [agents]\n")) {
		t.Error("a team and a manifest are not told apart")
	}
}

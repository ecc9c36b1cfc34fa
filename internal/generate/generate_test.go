package main

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/api/agents"
)

// TestFilesAreCurrent keeps the generated files equal to the table.
func TestFilesAreCurrent(t *testing.T) {
	t.Parallel()
	changed, err := generated()
	if err != nil {
		t.Fatal(err)
	}
	for path := range changed {
		t.Errorf("%s shows another table: make generate", path)
	}
}

// TestEveryChangeHasAKey: the clients repeat each call of an agent after a lost connection. That
// is safe only if a call that changes something has a key.
func TestEveryChangeHasAKey(t *testing.T) {
	t.Parallel()
	reading := []string{agents.AgentGet.Name, agents.GrantList.Name, agents.GrantCheck.Name, agents.BudgetGet.Name, agents.ModelQueue.Name, agents.AuditRead.Name, agents.EventTrace.Name, agents.AgentOffers.Name,
		agents.MailReceive.Name, agents.MailAnswer.Name, agents.AgentWait.Name, agents.AgentList.Name, agents.AgentTree.Name, agents.NameLookup.Name, agents.NameList.Name, agents.StateGet.Name, agents.StateList.Name, agents.StateWatch.Name,
		agents.BlobWrite.Name, agents.BlobRead.Name, // a part may be written again
		agents.AgentReady.Name, agents.JobGet.Name, agents.JobList.Name, agents.ApprovalOwn.Name, agents.ToolList.Name} // that an agent is ready holds until it ends: a repetition changes nothing
	for _, m := range tableOf(t).Agent {
		if keyed := m.Keyed(); keyed == slices.Contains(reading, m.Name) {
			t.Errorf("%s changes nothing: %t; it has a key: %t", m.Name, !keyed, keyed)
		}
	}
}

// TestEverySideHasItsMethods: an agent's calls name no run, a user's do; both languages have them.
func TestEverySideHasItsMethods(t *testing.T) {
	t.Parallel()
	table := tableOf(t)
	for _, m := range table.Agent {
		if m.has("run") {
			t.Errorf("%s of an agent has a run", m.Name)
		}
	}
	drawn := map[string]string{}
	for _, file := range []string{"cloved_api.py", "api.js"} {
		text, err := table.draw(file)
		if err != nil {
			t.Fatal(err)
		}
		drawn[file] = text
	}
	for _, name := range []string{"run.start", "run.wait", "run.exec", "run.copy_in", "run.copy_out", "run.logs", "event.follow", "grant.give", "agent.get"} {
		for file, text := range drawn {
			if !strings.Contains(text, `"`+name+`"`) {
				t.Errorf("%s has no %s", file, name)
			}
		}
	}
	for file, text := range drawn {
		if strings.Contains(text, `"kernel.call"`) {
			t.Errorf("%s has a method of a supervisor", file)
		}
	}
}

func tableOf(t *testing.T) *table {
	t.Helper()
	root, err := treeRoot()
	if err != nil {
		t.Fatal(err)
	}
	table, err := newTable(root)
	if err != nil {
		t.Fatal(err)
	}
	return table
}

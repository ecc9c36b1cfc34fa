package api

import (
	"reflect"
	"testing"
)

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	notes := map[string]bool{}
	for _, n := range Notifications {
		if notes[n.Name] || n.Params == nil || n.From != FromClove && n.From != FromCaller {
			t.Errorf("%s: twice, or not complete", n.Name)
		}
		notes[n.Name] = true
	}
	seen := map[string]bool{}
	for _, m := range Methods {
		if seen[m.Name] || m.Doc == "" || m.Params == nil || m.Result == nil {
			t.Errorf("%s: twice, or not complete", m.Name)
		}
		seen[m.Name] = true
		if m.Tier != Stable && m.Tier != Experimental {
			t.Errorf("%s has the tier %q", m.Name, m.Tier)
		}
		if len(m.Access.Callers()) == 0 || m.ForAgents() != (m.Access.Callers()[len(m.Access.Callers())-1] == "agent") {
			t.Errorf("%s is for %q", m.Name, m.Access.Callers())
		}
		if _, has := reflect.TypeOf(m.Params).FieldByName("RunParams"); m.Access == AccessOwner && !has && reflect.TypeOf(m.Params) != reflect.TypeFor[RunParams]() {
			t.Errorf("%s: it is for owners and names no run", m.Name)
		}
		if m.Shape == ShapeStream && !notes[m.Notes] {
			t.Errorf("%s: it streams nothing that is known", m.Name)
		}
		for _, code := range m.Errors {
			if _, known := rowOf(code); !known {
				t.Errorf("%s: error %d is not of the set", m.Name, code)
			}
		}
	}
}

// The gate reads the parameters of each method for agents, and of no other.
func TestAgentParamsAreThoseOfTheTable(t *testing.T) {
	t.Parallel()
	for _, m := range Methods {
		p := AgentParams(m.Name)
		if (p != nil) != m.ForAgents() || p != nil && reflect.TypeOf(p).Elem() != reflect.TypeOf(m.Params) {
			t.Errorf("%s has %T, the table %T", m.Name, p, m.Params)
		}
	}
}

// A summary is one line, for tables.
func TestSummaryIsTheFirstSentence(t *testing.T) {
	t.Parallel()
	for doc, want := range map[string]string{"Does one thing.": "Does one thing", "Does a. Does b.": "Does a", "Reads v1.2 of it. More.": "Reads v1.2 of it"} {
		if got := (Method{Doc: doc}).Summary(); got != want {
			t.Errorf("%q: %q", doc, got)
		}
	}
}

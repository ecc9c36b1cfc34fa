package grant

import (
	"strings"
	"testing"
	"time"
)

func TestCheckSaysWhy(t *testing.T) {
	t.Parallel()
	row := func(id string, kind Kind, pattern string, rights Rights) Grant {
		return Grant{ID: id, Kind: kind, Pattern: pattern, Rights: rights, UsesLeft: Unlimited}
	}
	ended := row("late", State, "/notes", ReadWrite)
	ended.Expires = now.Add(-time.Hour)
	spent := row("spent", State, "/notes", ReadWrite)
	spent.UsesLeft = 0
	counted := row("counted", State, "/notes", ReadWrite)
	counted.UsesLeft = 1
	readOnly, free, other, bad := row("ro", State, "/notes", ReadOnly), row("free", State, "/", ReadWrite), row("other", State, "/notes2", ReadWrite), row("bad", State, "notes", ReadWrite)
	foreign := row("tool", Tool, "*", NoRights)

	if _, reason, ok := Check([]Grant{row("m", Model, "a*", NoRights)}, scope(t, "model:ab:provider-tools"), now); ok || reason != "grant m gives no rights on a*, not provider-tools" {
		t.Errorf("%q, %t", reason, ok)
	}
	for _, row := range []struct {
		name   string
		grants []Grant
		want   string // the id of the grant that allows it
		reason string
	}{
		{"nothing", nil, "", "there is no grant of kind state"},
		{"another kind", []Grant{foreign}, "", "there is no grant of kind state"},
		{"a damaged row", []Grant{bad, foreign}, "", "grant bad cannot be read, it is for "},
		{"another path", []Grant{bad, other}, "", "grant other is for state:/notes2:rw, which does not cover state:/notes/a:rw"},
		{"rights", []Grant{other, readOnly, bad}, "", "grant ro gives ro on /notes, not rw"},
		{"spent", []Grant{other, readOnly, spent}, "", "grant spent has no uses left"},
		{"expired", []Grant{spent, ended, readOnly}, "", "grant late expired at 2026-11-23T11:00:00Z"},
		{"the first of equals", []Grant{readOnly, row("ro2", State, "/", ReadOnly)}, "", "grant ro gives"},
		{"one with uses", []Grant{ended, readOnly, counted, spent}, "counted", ""},
		{"one without a number of uses", []Grant{counted, free, ended}, "free", ""},
		{"a zero grant", []Grant{{}}, "", "there is no grant"},
	} {
		g, reason, ok := Check(row.grants, scope(t, "state:/notes/a:rw"), now)
		if ok != (row.want != "") || g.ID != row.want || !strings.HasPrefix(reason, row.reason) || ok != (reason == "") {
			t.Errorf("%s: %q, %q, %t", row.name, g.ID, reason, ok)
		}
	}
	if _, reason, ok := Check([]Grant{foreign}, scope(t, "tool:*"), now); ok || !strings.Contains(reason, "is a pattern") {
		t.Errorf("a pattern is requested: %q, %t", reason, ok)
	}
	if _, _, ok := Check([]Grant{{}}, Scope{}, now); ok {
		t.Error("nothing is allowed by nothing")
	}
}

package api

import (
	"encoding/json"
	"testing"
)

// Every notification is complete, and there once.
func TestNotificationsAreSound(t *testing.T) {
	t.Parallel()
	notes := map[string]bool{}
	for _, n := range Notifications {
		if notes[n.Name] || n.Params == nil || n.From != FromClove && n.From != FromCaller {
			t.Errorf("%s: twice, or not complete", n.Name)
		}
		notes[n.Name] = true
	}
}

// A row decodes as its type says, returns what could be read with an error, and tables see the
// same row.
func TestRow(t *testing.T) {
	t.Parallel()
	row := Row[StopParams, Nothing]{Name: "run.stop", Access: AccessOwner, Tier: Stable, Audit: AuditAdmin, Doc: "Ends a run."}
	m := row.Method()
	if m.Name != row.Name || m.Shape != ShapeCall || m.Access != row.Access || m.Tier != row.Tier || m.Audit != row.Audit || m.Doc != row.Doc ||
		m.Params != any(StopParams{}) || m.Result != any(Nothing{}) {
		t.Errorf("%+v", m)
	}
	for text, want := range map[string]string{"": "", `{"run":"one"}`: "one", `{"run":"one","unknown":1}`: "one", `{"run":"one","grace_ns":"x"}`: "one", `{"run":5}`: "", `[]`: ""} {
		sound := text == "" || text == `{"run":"one"}`
		p, err := row.Decode(json.RawMessage(text))
		if p.Run != want || (err == nil) != sound || err != nil && ErrorOf(err).Code != CodeParams {
			t.Errorf("%q: %+v, %v", text, p, err)
		}
		untyped, err := m.Decode(json.RawMessage(text))
		if stop, is := untyped.(StopParams); !is || stop.Run != want || (err == nil) != sound {
			t.Errorf("%q: the table has %+v, %v", text, untyped, err)
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

package main

import (
	"encoding/json"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// A body is JSON, or else a text.
func TestMailBodies(t *testing.T) {
	for body, want := range map[string]string{`{"n": 1}`: `{"n": 1}`, "hello there": `"hello there"`, "7": "7", `"7"`: `"7"`, "": `""`, "<&>": `"\u003c\u0026\u003e"`} {
		if got, err := readBody(body); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", body, got, err)
		}
	}
	b := newBench(t)
	f := b.cloved()
	f.answer(methods.MailPost.Name, api.MailSendResult{ID: "m/1"})
	status, stdout, stderr := b.clove("mail", "send", "--namespace", "acme", "--within", "10m", "--priority", "3", "critic", "read this")
	var asked api.MailPostParams
	f.heard(methods.MailPost.Name, &asked)
	if status != 0 || stdout != "m/1\n" || stderr != "" || asked.To != "critic" || string(asked.Body) != `"read this"` || asked.ExpiresMS != 600_000 || asked.Priority != 3 || asked.Namespace != "acme" {
		t.Errorf("%d, %q, %q, %+v", status, stdout, stderr, asked)
	}
}

// Mail is shown as a table, in which what agents wrote cannot act on a terminal, and as JSON.
func TestMailIsShown(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(methods.MailRead.Name, api.MailReadResult{Messages: []api.Mail{{ID: "m/1", Sender: "one\x1b[2J", To: "critic", Body: json.RawMessage(`{"n":1}`)}}})
	status, stdout, _ := b.clove("mail", "read", "critic")
	if status != 0 || strings.Contains(stdout, "\x1b") || !strings.Contains(stdout, `{"n":1}`) || !strings.HasPrefix(stdout, "FROM") {
		t.Errorf("%d, %q", status, stdout)
	}
	f.answer(methods.MailRead.Name, api.MailReadResult{Messages: []api.Mail{{ID: "m/1", Body: json.RawMessage(`{"n":1}`)}}})
	var all []api.Mail
	if status, stdout, _ := b.clove("mail", "read", "--json", "critic"); status != 0 || json.Unmarshal([]byte(stdout), &all) != nil || len(all) != 1 || all[0].ID != "m/1" {
		t.Errorf("%d, %q", status, stdout)
	}
	for line, says := range map[string]string{"mail send a": "clove mail send", "mail send --within soon a b": "is no time", "mail send --priority x a b": "not a number", "mail read": "clove mail read", "name reserve": "clove name reserve", "name ls --tag": "tag"} {
		if status, _, stderr := newBench(t).clove(strings.Fields(line)...); status != exitFailed || !strings.Contains(stderr, says) {
			t.Errorf("%s: %d, %s", line, status, stderr)
		}
	}
}

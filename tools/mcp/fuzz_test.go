package mcp

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/api/agents"
)

// Whatever a client sends, the process goes on, and only calls of agents' methods go over the channel, with
// parameters that their types take.
func FuzzRequests(f *testing.F) {
	call, _ := single("tools/call", `"name":"echo","arguments":{"a":1}`, "echo")
	for _, seed := range []string{call, initialize, listing, "[" + listing + "]", `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"clove_mail_send","arguments":{"to":"a","body":[1]}}}`,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"clove_state_set","arguments":{"path":"a","value":{},"if_version":0}}}`,
		`{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"clove://blob/` + strings.Repeat("a", 64) + `?offset=5"}}`,
		`{"jsonrpc":"2.0","id":1,"result":{}}`, `{"jsonrpc":"2.0","id":1.5,"method":"ping"}`, `{"id":null}`, "null", "{}"} {
		f.Add(seed, revisionOld, "tools/call", "echo")
		f.Add(seed, revisionNew, "tools/call", "echo")
		f.Add(seed, "", "", "")
	}
	rows := append(slices.Clone(agents.All()), agents.ToolList.Method(), agents.ToolCall.Method())
	f.Fuzz(func(t *testing.T, body, version, method, name string) {
		r := newRig(t, kernel("send:*"))
		h := r.handler()
		q := httptest.NewRequest("POST", "http://localhost"+Path, strings.NewReader(body))
		for key, value := range map[string]string{"Content-Type": "application/json", "Accept": "application/json, text/event-stream", versionHeader: version, "Mcp-Method": method, "Mcp-Name": name} {
			q.Header.Set(key, value)
		}
		ctx, cancel := r.soon()
		defer cancel()
		h.ServeHTTP(httptest.NewRecorder(), q.WithContext(ctx))
		for len(r.calls) > 0 {
			c := <-r.calls
			row, known := rows.Find(c.method)
			if !known {
				t.Fatalf("%q: %s", body, c.method)
			}
			if _, err := row.Decode([]byte(c.params)); err != nil {
				t.Errorf("%q: %s: %v", body, c.params, err)
			}
		}
		if a := r.ask(http.MethodGet, Path, ""); a.status != http.StatusMethodNotAllowed {
			t.Errorf("%+v", a)
		}
	})
}

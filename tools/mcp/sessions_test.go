package mcp

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

const initialize = `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"test","version":"1"}}}`

// session begins one, and returns its id.
func (r *rig) session() string {
	r.t.Helper()
	a := r.post(initialize)
	id := a.header.Get(sessionHeader)
	if a.status != 200 || id == "" {
		r.t.Fatalf("%+v", a)
	}
	return id
}

func (r *rig) inSession(id string) int {
	return r.post(listing, sessionHeader, id, versionHeader, revisionOld).status
}

// A client that begins sessions and ends none loses the one that it has not used for longest. One with a call
// in flight stays.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	r := newRig(t, held(nil))
	busy := r.connect(revisionOld, nil)
	go busy.CallTool(t.Context(), &sdk.CallToolParams{Name: "echo"})
	c := r.next("tool.call")
	first, second := r.session(), r.session()
	for range maxSessions - 3 {
		r.session()
	}
	if r.inSession(second) != 200 || r.inSession(first) != 200 { // control: there is room for all
		t.Error("a session has ended")
	}
	third := r.session() // the first that was begun and never used goes
	for name, row := range map[string]struct {
		id   string
		want int
	}{"first": {first, 200}, "second": {second, 200}, "third": {third, 200}} {
		if got := r.inSession(row.id); got != row.want {
			t.Errorf("%s: %d", name, got)
		}
	}
	for range maxSessions - 1 {
		r.session()
	}
	if r.inSession(first) != http.StatusNotFound || r.inSession(busy.ID()) != 200 || c.ctx.Err() != nil {
		t.Error("not the one that was idle longest has ended")
	}
}

// Requests of sessions that there are not leave nothing behind.
func TestSessionsThatThereAreNot(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.session()
	s := r.handler().(*handler).sessions
	for range 100 {
		if got := r.inSession(s.newID()); got != http.StatusNotFound {
			t.Fatal(got)
		}
	}
	if got := r.inSession(id); got != 200 || len(s.used) != 1 { // control: the one that there is
		t.Errorf("%d, %d are kept", got, len(s.used))
	}
}

// A session of a process that has gone is served on, and so are requests without one.
func TestASessionOutlastsItsProcess(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.session()
	r.listen() // another copy of the listener has other sessions, as another process
	call := `{"jsonrpc":"2.0","id":5,"method":"tools/call","params":{"name":"echo","arguments":{"a":1}}}`
	for _, headers := range [][]string{{sessionHeader, id, versionHeader, revisionOld}, {versionHeader, revisionOld}, {versionHeader, "2025-06-18"}, {}} {
		a := r.post(call, headers...)
		if a.status != 200 || !strings.Contains(a.text, `{\"a\":1}`) {
			t.Errorf("%q: %+v", headers, a)
		}
	}
	for _, version := range []string{"2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"} {
		a := r.post(strings.Replace(initialize, "2025-11-25", version, 1))
		var m struct {
			Result sdk.InitializeResult `json:"result"`
		}
		_, text, _ := strings.Cut(a.text, "data: ")
		if err := json.Unmarshal([]byte(text), &m); err != nil || m.Result.ProtocolVersion != version {
			t.Errorf("%s: %s", version, a.text)
		}
	}
}

func TestWhatIsNotServed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.session()
	for name, row := range map[string]struct {
		method, path, body string
		headers            []string
		status             int
	}{
		"control":           {"POST", Path, listing, nil, 200},
		"another path":      {"POST", "/", listing, nil, 404},
		"below":             {"POST", Path + "/", listing, nil, 404},
		"metadata of OAuth": {"GET", "/.well-known/oauth-protected-resource", "", nil, 404},
		"a stream":          {"GET", Path, "", []string{sessionHeader, id}, 405},
		"another's session": {"DELETE", Path, "", []string{sessionHeader, "x"}, 405},
		"options":           {"OPTIONS", Path, "", nil, 405},
		"several at once":   {"POST", Path, " [" + listing + "]", nil, 400},
		"no JSON":           {"POST", Path, "{", nil, 400},
		"nothing":           {"POST", Path, "", nil, 400},
		"another type":      {"POST", Path, listing, []string{"Content-Type", "text/plain"}, 415},
		"no known revision": {"POST", Path, listing, []string{versionHeader, "2025-01-01"}, 400},
		"nested":            {"POST", Path, `{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"echo","arguments":` + strings.Repeat(`{"a":`, 2000) + "1" + strings.Repeat("}", 2000) + "}}", nil, 400},
	} {
		if a := r.ask(row.method, row.path, row.body, row.headers...); a.status != row.status {
			t.Errorf("%s: %d, %.200s", name, a.status, a.text)
		}
	}
}

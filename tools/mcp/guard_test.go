package mcp

import (
	"bytes"
	"log"
	"net/http"
	"strings"
	"testing"
)

// A web page whose name was rebound to this machine, or any other, calls no tools. The controls are programs
// and pages of this machine.
func TestOtherSitesAreRefused(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	_, port, _ := strings.Cut(r.address, ":")
	body, headers := single("tools/call", `"name":"echo"`, "echo")
	for name, row := range map[string]struct {
		headers []string
		status  int
	}{
		"control: a program":          {nil, 200},
		"control: localhost":          {[]string{"Host", "localhost:" + port}, 200},
		"control: another port":       {[]string{"Host", "127.0.0.1:8412"}, 200},
		"control: IPv6":               {[]string{"Host", "[::1]:8412"}, 200},
		"control: no port":            {[]string{"Host", "localhost"}, 200},
		"control: a page of its own":  {[]string{"Origin", "http://localhost:3000"}, 200},
		"control: IPv6 page":          {[]string{"Origin", "http://[::1]"}, 200},
		"a rebound name":              {[]string{"Host", "evil.example:" + port}, 403},
		"a name that begins well":     {[]string{"Host", "localhost.evil.example"}, 403},
		"an address that begins well": {[]string{"Host", "127.0.0.1.evil.example"}, 403},
		"another address":             {[]string{"Host", "10.0.0.1"}, 403},
		"any address":                 {[]string{"Host", "0.0.0.0"}, 403},
		"a page":                      {[]string{"Origin", "https://evil.example"}, 403},
		"a rebound page":              {[]string{"Host", "evil.example", "Origin", "http://evil.example"}, 403},
		"a page that hides its own":   {[]string{"Origin", "null"}, 403},
		"a file":                      {[]string{"Origin", "file://"}, 403},
		"an extension":                {[]string{"Origin", "chrome-extension://localhost"}, 403},
		"no origin":                   {[]string{"Origin", "localhost"}, 403},
		"a user of this machine":      {[]string{"Origin", "http://localhost@evil.example"}, 403},
	} {
		before := len(r.calls)
		a := r.post(body, append(headers, row.headers...)...)
		if a.status != row.status || (len(r.calls) > before) != (row.status == 200) {
			t.Errorf("%s: %d, %s", name, a.status, a.text)
		}
	}
	if ours(&http.Request{Host: "evil.example"}) { // the SDK refuses it, too
		t.Error("any name is ours")
	}
	if !ours(&http.Request{Host: "localhost", Header: http.Header{"Origin": {"http://localhost"}}}) ||
		ours(&http.Request{Host: "localhost", Header: http.Header{"Origin": {"http://localhost", "http://evil.example"}}}) {
		t.Error("of two origins, one counts")
	}
}

// Where the server has a token, each request needs it, and no log has it.
func TestTheTokenIsNeeded(t *testing.T) {
	var logged bytes.Buffer
	log.SetOutput(&logged)
	defer log.SetOutput(log.Default().Writer())
	const token = "0123456789abcdef"
	r := newRig(t, func(r *rig) { r.serve.Token = token })
	body, headers := single("tools/call", `"name":"echo","arguments":{"secret":"body"}`, "echo")
	for name, row := range map[string]struct {
		value  string
		status int
	}{
		"control":          {"Bearer " + token, 200},
		"control: a word":  {"bearer " + token, 200},
		"none":             {"", 401},
		"another":          {"Bearer 0123456789abcdee", 401},
		"the beginning":    {"Bearer 0123456789abcde", 401},
		"more":             {"Bearer " + token + "0", 401},
		"another scheme":   {"Basic " + token, 401},
		"only the token":   {token, 401},
		"an empty one":     {"Bearer ", 401},
		"two, both of one": {"Bearer " + token + ", Bearer " + token, 401},
	} {
		before := len(r.calls)
		a := r.post(body, append(headers, "Authorization", row.value)...)
		if a.status != row.status || (a.header.Get("WWW-Authenticate") == "Bearer") != (row.status == 401) || (len(r.calls) > before) != (row.status == 200) {
			t.Errorf("%s: %d, %q", name, a.status, a.text)
		}
	}
	if !authorized(&http.Request{}, "") || authorized(&http.Request{Header: http.Header{"Authorization": {"Bearer " + token, "Bearer x"}}}, token) {
		t.Error("of two headers, one counts")
	}
	if logged.Len() > 0 {
		t.Errorf("the log has %q", logged.String())
	}
}

// What the headers of a request say must be what its body says: something between the client and the server may
// decide by the headers. The controls agree.
func TestForgedHeaders(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	id := r.session()
	call, headers := single("tools/call", `"name":"echo"`, "echo")
	list, listHeaders := single("tools/list", "", "")
	read, readHeaders := single("resources/read", `"uri":"clove://run"`, "clove://other")
	for name, row := range map[string]struct {
		body    string
		headers []string
		status  int
		has     string
	}{
		"control":               {call, headers, 200, `"result"`},
		"control: a list":       {list, listHeaders, 200, `"result"`},
		"another name":          {call, append(headers, "Mcp-Name", "harmless"), 400, "-32020"},
		"no name":               {call, append(headers, "Mcp-Name", ""), 400, "-32020"},
		"another method":        {call, append(headers, "Mcp-Method", "tools/list"), 400, "-32020"},
		"no method":             {call, append(headers, "Mcp-Method", ""), 400, "-32020"},
		"another resource":      {read, readHeaders, 400, "-32020"},
		"no revision":           {call, append(headers, versionHeader, ""), 400, "-32020"},
		"an older revision":     {call, append(headers, versionHeader, revisionOld), 400, "-32020"},
		"of a session":          {call, append(headers, versionHeader, revisionOld, sessionHeader, id), 400, "-32020"},
		"one that is to come":   {strings.ReplaceAll(call, revisionNew, "2030-01-01"), append(headers, versionHeader, "2030-01-01"), 400, "-32022"},
		"two names in the body": {strings.Replace(call, `"name":"echo"`, `"name":"harmless","name":"echo"`, 1), append(headers, "Mcp-Name", "harmless"), 400, "-32020"},
		"a name in capitals":    {strings.Replace(call, `"name":"echo"`, `"name":"harmless","Name":"echo"`, 1), append(headers, "Mcp-Name", "echo"), 400, "-32020"},
	} {
		before := len(r.calls)
		a := r.post(row.body, row.headers...)
		if a.status != row.status || !strings.Contains(a.text, row.has) || (len(r.calls) > before) != (row.status == 200) {
			t.Errorf("%s: %d, %s", name, a.status, a.text)
		}
	}
}

package swap

import (
	"bufio"
	"compress/gzip"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/secrets"
)

// http1 has the server speak HTTP/1.1 alone.
func http1(s *httptest.Server) { s.EnableHTTP2 = false }

// The server gets the secret and the agent has a placeholder, in each way in which the header is written and with both
// versions of HTTP. The control is a request that carries none.
func TestTheHeaderIsReplaced(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][]func(*httptest.Server){"HTTP/2.0": nil, "HTTP/1.1": {http1}} {
		seen := make(chan string, 1)
		r, placeholder := newRig(t, secrets.Terms{Prefix: "ghp_"}, func(w http.ResponseWriter, q *http.Request) {
			seen <- q.Proto + " " + q.Header.Get("Authorization")
		}, set...)
		basic := func(user, password string) string {
			return "Basic " + base64.StdEncoding.EncodeToString([]byte(user+":"+password))
		}
		for sent, want := range map[string]string{
			"": "", "Bearer " + placeholder: "Bearer " + value, "token " + placeholder: "token " + value, placeholder: value,
			basic("x-access-token", placeholder): basic("x-access-token", value), basic(placeholder, ""): basic(value, ""), "Bearer other": "Bearer other",
		} {
			if a := r.get("/", "Authorization: "+sent); a.err != nil || a.status != 200 {
				t.Fatalf("%s: %+v", sent, a)
			}
			if got := <-seen; got != name+" "+want {
				t.Errorf("%q arrives as %q, not %q", sent, got, want)
			}
		}
		if uses := r.used(); uses != 5 || len(r.noted(0)) != 0 {
			t.Errorf("%d uses, %+v", uses, r.noted(0))
		}
	}
}

// What a server repeats of the secret does not come back. The control is its placeholder, which does.
func TestAnEchoHasNoSecret(t *testing.T) {
	t.Parallel()
	for _, set := range [][]func(*httptest.Server){nil, {http1}} {
		r, placeholder := newRig(t, secrets.Terms{}, func(w http.ResponseWriter, q *http.Request) {
			w.Header().Set("Location", "/back?"+q.Header.Get("Authorization"))
			w.Header().Set("Trailer", "X-End")
			w.WriteHeader(302)
			echo(w, q)
			w.Header().Set("X-End", q.Header.Get("Authorization"))
		}, set...)
		a := r.get("/", "Authorization: Bearer "+placeholder, "X-Note: "+placeholder)
		if a.err != nil || a.status != 302 || strings.Contains(a.text, value) || strings.Contains(a.header.Get("Location"), value) {
			t.Errorf("%+v", a)
		}
		if !strings.Contains(a.text, "X-Note: "+placeholder) || !strings.Contains(a.text, "Authorization: Bearer ***") {
			t.Errorf("control: %s", a.text)
		}
	}
}

// A placeholder where no secret may be leaves as it is, and is reported. So does that of another run. The control is the same request with
// the placeholder in its place.
func TestAPlaceholderInAnotherPlace(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	r, placeholder := newRig(t, secrets.Terms{}, func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		seen <- q.Header.Get("X-Other") + " " + q.URL.RawQuery + " " + string(body)
	})
	other := secrets.NewPlaceholder("")
	for i, row := range []struct {
		path, body, header string
		want, detail       string
		reason             link.Reason
	}{
		{"/", "", "X-Other: " + placeholder, placeholder + "  ", "header X-Other", link.ReasonPlace},
		{"/?q=" + placeholder, "", "", " q=" + placeholder + " ", "query", link.ReasonPlace},
		{"/", "begin " + placeholder, "", "  begin " + placeholder, "body", link.ReasonPlace},
		{"/", "begin " + other, "", "  begin " + other, "body", link.ReasonForeign},
	} {
		method := "GET"
		if row.body != "" {
			method = "POST"
		}
		var header []string
		if row.header != "" {
			header = append(header, row.header)
		}
		if a := r.ask(method, row.path, row.body, header...); a.err != nil || a.status != 200 {
			t.Fatalf("%+v: %+v", row, a)
		}
		if got := <-seen; got != row.want || strings.Contains(got, value) {
			t.Errorf("%+v arrives as %q", row, got)
		}
		if all := r.noted(i + 1); all[i].Reason != row.reason || all[i].Detail != row.detail {
			t.Errorf("%+v: %+v", row, all[i])
		}
	}
	if r.get("/", "Authorization: Bearer "+placeholder); r.used() != 1 {
		t.Errorf("control: it is used %d times", r.used())
	}
}

// Where the terms say so, a placeholder in the query and in a body is replaced, and the body has another length then.
func TestTermsWithOtherPlaces(t *testing.T) {
	t.Parallel()
	seen := make(chan string, 1)
	r, placeholder := newRig(t, secrets.Terms{In: []string{secrets.InBody, secrets.InURL}, Header: "X-Key"}, func(w http.ResponseWriter, q *http.Request) {
		body, _ := io.ReadAll(q.Body)
		seen <- fmt.Sprint(q.Header.Get("X-Key"), " ", q.URL.RawQuery, " ", string(body), " ", q.ContentLength)
	})
	if a := r.ask("POST", "/?k="+placeholder, "b="+placeholder, "X-Key: "+placeholder); a.err != nil {
		t.Fatal(a.err)
	}
	if got, want := <-seen, fmt.Sprint(value, " k=", value, " b=", value, " ", len("b="+value)); got != want {
		t.Errorf("%s, not %s", got, want)
	}
}

// A request that no rule allows is refused with a reason, and does not reach the server. The control is one that a rule allows.
func TestRequestsThatNoRuleAllows(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r, placeholder := newRig(t, secrets.Terms{Allow: []string{"GET /repos/**", "POST /repos/acme/*/issues"}}, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for request, status := range map[string]int{
		"GET /repos/acme/x": 200, "POST /repos/acme/x/issues": 200,
		"POST /repos/acme/x": 403, "DELETE /repos/acme": 403, "GET /user": 403, "GET /repository": 403,
	} {
		method, path, _ := strings.Cut(request, " ")
		before := asked.Load()
		a := r.ask(method, path, "", "Authorization: Bearer "+placeholder)
		if a.err != nil || a.status != status || (asked.Load() != before) != (status == 200) {
			t.Errorf("%s: %+v", request, a)
		}
		if status == 403 && (!strings.Contains(a.text, `"reason":"rule"`) || a.header.Get("Content-Type") != "application/json") {
			t.Errorf("%s: %s", request, a.text)
		}
	}
}

// What servers read differently, and what is for another host, is refused before it is written.
func TestWhatServersReadDifferently(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r, _ := newRig(t, secrets.Terms{}, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for _, row := range []struct {
		path, header string
		status       int
	}{
		{"/repos/../user", "", 400}, {"/repos//user", "", 400}, {"/repos/%2e%2e/user", "", 400}, {"/repos%2Fuser", "", 400}, {"/repos/%252e", "", 400},
		{"/", "X-HTTP-Method-Override: DELETE", 400}, {"/", "X-Original-URL: /user", 400}, {"/", "Host: other.example.com", 421}, {"/", "Host: example.com:8443", 421},
		{"/", "Host: EXAMPLE.com:443", 200}, {"/repos/a%20b", "", 200},
	} {
		header := []string{}
		if row.header != "" {
			header = append(header, row.header)
		}
		before := asked.Load()
		if a := r.get(row.path, header...); a.err != nil || a.status != row.status || (asked.Load() != before) != (row.status == 200) {
			t.Errorf("%+v: %d, %v %s", row, a.status, a.err, a.text)
		}
	}
}

// A connection is for one name: TLS that shows another has no certificate, also where that is a host of the run's.
func TestTLSShowsTheNameOfTheConnection(t *testing.T) {
	t.Parallel()
	r, _ := newRig(t, secrets.Terms{Hosts: []string{site, "www.example.com"}}, echo)
	for shown, served := range map[string]bool{site: true, "www.example.com": false, "other.example.net": false} {
		conn, err := r.connect(site)
		must(t, err)
		err = tls.Client(conn, &tls.Config{ServerName: shown, InsecureSkipVerify: true}).HandshakeContext(t.Context())
		conn.Close()
		if (err == nil) != served {
			t.Errorf("%s: %v", shown, err)
		}
	}
}

// A server that does not prove its name gets nothing. The control is the same server with the authority of the terms.
func TestAServerProvesItsName(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	handler := func(http.ResponseWriter, *http.Request) { asked.Add(1) }
	control, placeholder := newRig(t, secrets.Terms{}, handler)
	if a := control.get("/", "Authorization: Bearer "+placeholder); a.status != 200 || asked.Load() != 1 {
		t.Errorf("control: %+v", a)
	}
	ca, err := newCertificate()
	must(t, err)
	r, placeholder := newRig(t, secrets.Terms{CA: ca}, handler)
	a := r.get("/", "Authorization: Bearer "+placeholder)
	if a.status != 502 || !strings.Contains(a.text, "does not prove that it is "+site) || asked.Load() != 1 || r.used() != 0 {
		t.Errorf("%+v, %d requests", a, asked.Load())
	}
}

// A use that is refused is refused with its reason, and the server gets nothing.
func TestAUseThatIsRefused(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r, placeholder := newRig(t, secrets.Terms{}, func(http.ResponseWriter, *http.Request) { asked.Add(1) })
	for status, verdict := range map[int]link.Verdict{403: {Reason: "its 3 uses are used up"}, 503: {Reason: "cloved is away", Busy: true}} {
		r.mu.Lock()
		r.refuse = verdict
		r.mu.Unlock()
		if a := r.get("/", "Authorization: Bearer "+placeholder); a.status != status || !strings.Contains(a.text, verdict.Reason) || asked.Load() != 0 {
			t.Errorf("%+v: %+v", verdict, a)
		}
	}
}

// An answer that is compressed is searched as it was before, and passes so. One in another encoding is refused.
func TestEncodedAnswersAreDecoded(t *testing.T) {
	t.Parallel()
	r, placeholder := newRig(t, secrets.Terms{}, func(w http.ResponseWriter, q *http.Request) {
		encoding := q.URL.Query().Get("as")
		w.Header().Set("Content-Encoding", encoding)
		var to io.WriteCloser = nopCloser{w}
		if encoding == "gzip" {
			to = gzip.NewWriter(w)
		}
		_, _ = io.WriteString(to, "your token "+q.Header.Get("Authorization"))
		to.Close()
	})
	for encoding, status := range map[string]int{"gzip": 200, "br": 502, "identity": 200} {
		a := r.get("/?as="+encoding, "Authorization: Bearer "+placeholder, "Accept-Encoding: gzip, br")
		if a.status != status || strings.Contains(a.text, value) || (status == 200) != strings.HasPrefix(a.text, "your token Bearer ****") {
			t.Errorf("%s: %+v", encoding, a)
		}
	}
}

type nopCloser struct{ io.Writer }

func (nopCloser) Close() error { return nil }

// The values change while the run goes on: the next request has the new one, and the old one is still taken out of answers.
func TestANewValue(t *testing.T) {
	t.Parallel()
	const renewed = "ghp_another-value-of-the-secret-0815"
	seen := make(chan string, 1)
	r, placeholder := newRig(t, secrets.Terms{}, func(w http.ResponseWriter, q *http.Request) {
		seen <- q.Header.Get("Authorization")
		_, _ = io.WriteString(w, value+" "+renewed)
	})
	read, write, err := os.Pipe()
	must(t, err)
	must(t, json.NewEncoder(write).Encode(link.Values{"TOKEN": renewed}))
	write.Close()
	must(t, r.swap.Renew(read))
	for end := time.Now().Add(soon); ; {
		a := r.get("/", "Authorization: Bearer "+placeholder)
		if got := <-seen; got == "Bearer "+renewed {
			if strings.Contains(a.text, value) || strings.Contains(a.text, renewed) {
				t.Errorf("%s", a.text)
			}
			return
		}
		if time.Now().After(end) {
			t.Fatal("it has the old value")
		}
	}
}

// Bytes pass both ways behind a change of protocol, also where the server would speak HTTP/2 with a client that does.
func TestAChangeOfProtocol(t *testing.T) {
	t.Parallel()
	for name, set := range map[string][]func(*httptest.Server){"HTTP/2 as well": nil, "HTTP/1.1 alone": {http1}} {
		seen := make(chan string, 1)
		r, placeholder := newRig(t, secrets.Terms{}, func(w http.ResponseWriter, q *http.Request) {
			seen <- q.Header.Get("Authorization")
			conn, client, err := http.NewResponseController(w).Hijack()
			if err != nil {
				return
			}
			defer conn.Close()
			_, _ = io.WriteString(conn, "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n")
			line, _ := client.ReadString('\n')
			_, _ = io.WriteString(conn, "again "+line)
		}, set...)
		secure := r.dials()
		fmt.Fprintf(secure, "GET / HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nConnection: Upgrade\r\nUpgrade: echo\r\n\r\n", site, placeholder)
		from := bufio.NewReader(secure)
		answer, err := http.ReadResponse(from, nil)
		must(t, err)
		if got := <-seen; answer.StatusCode != 101 || got != "Bearer "+value {
			t.Errorf("%s: %d, the server got %q", name, answer.StatusCode, got)
		}
		fmt.Fprintln(secure, "hello "+placeholder)
		if line, err := from.ReadString('\n'); line != "again hello "+placeholder+"\n" {
			t.Errorf("%s: %q, %v", name, line, err)
		}
	}
}

// A server may answer before it has read the body. What is in that is reported all the same.
func TestAnAnswerBeforeTheBody(t *testing.T) {
	t.Parallel()
	r, placeholder := newRig(t, secrets.Terms{}, func(w http.ResponseWriter, q *http.Request) {
		_ = http.NewResponseController(w).EnableFullDuplex()
		_, _ = io.WriteString(w, "early\n")
		_ = http.NewResponseController(w).Flush()
		_, _ = io.Copy(io.Discard, q.Body)
	}, http1)
	secure := r.dials()
	fmt.Fprintf(secure, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: %d\r\n\r\n", site, 1<<20+len(placeholder))
	answer, err := http.ReadResponse(bufio.NewReader(secure), nil)
	must(t, err)
	early := make([]byte, 6)
	if _, err := io.ReadFull(answer.Body, early); string(early) != "early\n" {
		t.Errorf("%q, %v", early, err)
	}
	_, err = io.WriteString(secure, strings.Repeat("x", 1<<20)+placeholder)
	must(t, err)
	if all := r.noted(1); all[0].Reason != link.ReasonPlace || all[0].Detail != "body" {
		t.Errorf("%+v", all)
	}
}

// Two requests in one, and a length that is said twice, are refused where the agent's bytes are parsed. The control is a sound one.
func TestASmuggledRequest(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	r, _ := newRig(t, secrets.Terms{}, func(_ http.ResponseWriter, q *http.Request) {
		asked.Add(1)
		_, _ = io.Copy(io.Discard, q.Body)
	}, http1)
	for name, row := range map[string]struct {
		head   string
		status int
	}{
		"control":             {"Content-Length: 5\r\n\r\nhello", 200},
		"two lengths":         {"Content-Length: 5\r\nContent-Length: 6\r\n\r\nhello!", 400},
		"a length of no form": {"Content-Length: +5\r\n\r\nhello", 400},
		"another encoding":    {"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\n", 501},
		"two hosts":           {"Host: other.example.com\r\n\r\n", 400},
		"a blank in a name":   {"Content-Length : 5\r\n\r\nhello", 400},
	} {
		secure := r.dials()
		before := asked.Load()
		fmt.Fprintf(secure, "POST / HTTP/1.1\r\nHost: %s\r\n%s", site, row.head)
		answer, err := http.ReadResponse(bufio.NewReader(secure), nil)
		if err != nil || answer.StatusCode != row.status || (asked.Load() != before) != (row.status == 200) {
			t.Errorf("%s: %+v, %v", name, answer, err)
		}
	}
	// Where both are there, the length does not count: the server gets one body, and what stands behind it is another request.
	secure := r.dials()
	before := asked.Load()
	fmt.Fprintf(secure, "POST / HTTP/1.1\r\nHost: %s\r\nContent-Length: 60\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nGET /smuggled HTTP/1.1\r\nHost: other.example.com\r\n\r\n", site)
	from := bufio.NewReader(secure)
	if _, err := http.ReadResponse(from, nil); err != nil {
		t.Error(err)
	}
	if second, err := http.ReadResponse(from, nil); err == nil && second.StatusCode == 200 || asked.Load() > before+1 {
		t.Errorf("%+v, %v", second, err)
	}
}

// An outer side that was taken over asks for what no parser would pass on: nothing of it reaches the server, and it sees no value.
// The control is an honest request of its own.
func TestAnOuterSideThatWasTakenOver(t *testing.T) {
	t.Parallel()
	var got []string
	var mu sync.Mutex
	r, placeholder := newRig(t, secrets.Terms{Allow: []string{"GET /repos/**"}}, func(w http.ResponseWriter, q *http.Request) {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, q.Method+" "+q.RequestURI+" "+q.Host)
		echo(w, q)
	}, http1, asAttacker)
	head := func(change func(*link.Head)) link.Head {
		h := link.Head{Method: "GET", Host: site, Path: "/repos/a", Header: http.Header{"Authorization": {"Bearer " + placeholder}}}
		change(&h)
		return h
	}
	attacker := r.attacker()
	for name, row := range map[string]struct {
		head   link.Head
		passes bool
	}{
		"control":             {head(func(*link.Head) {}), true},
		"a line in the query": {head(func(h *link.Head) { h.Query = "a HTTP/1.1\r\nHost: other\r\n\r\nGET /user" }), false},
		"a line in the path":  {head(func(h *link.Head) { h.Path = "/repos/a HTTP/1.1\r\nX: y" }), false},
		"a line in a header":  {head(func(h *link.Head) { h.Header["X"] = []string{"a\r\nAuthorization: Bearer " + placeholder} }), false},
		"a header's name":     {head(func(h *link.Head) { h.Header["X: y\r\nZ"] = []string{"a"} }), false},
		"a method":            {head(func(h *link.Head) { h.Method = "GET /user HTTP/1.1\r\nX: " }), false},
		"connect":             {head(func(h *link.Head) { h.Method = "CONNECT" }), false},
		"another host":        {head(func(h *link.Head) { h.Host = "other.example.com" }), false},
		"no rule":             {head(func(h *link.Head) { h.Path = "/user" }), false},
		"another connection":  {head(func(h *link.Head) { h.Conn = 1000 }), false},
	} {
		mu.Lock()
		before := len(got)
		mu.Unlock()
		if number := attacker.connects(); row.head.Conn == 0 {
			row.head.Conn = number
		}
		text := attacker.asks(row.head)
		mu.Lock()
		after := got
		mu.Unlock()
		if (len(after) > before) != row.passes || strings.Contains(text, value) {
			t.Errorf("%s: the server got %q, the attacker %s", name, after[before:], text)
		}
	}
}

// The run's authority is for its hosts alone, and signs no other authority.
func TestTheAuthorityIsConstrained(t *testing.T) {
	t.Parallel()
	r, _ := newRig(t, secrets.Terms{}, echo)
	block, _ := pem.Decode(r.swap.CA())
	ca, err := x509.ParseCertificate(block.Bytes)
	must(t, err)
	if !ca.IsCA || !ca.MaxPathLenZero || !ca.PermittedDNSDomainsCritical || !slices.Equal(ca.PermittedDNSDomains, []string{site}) || len(ca.ExcludedIPRanges) != 2 || len(ca.ExcludedEmailAddresses) != 1 || len(ca.ExcludedURIDomains) != 1 {
		t.Errorf("%+v", ca)
	}
}

// A client that sends requests for two hosts over one connection of HTTP/2, because they have one address and one authority, is refused
// the other host's: each certificate has one name, and the rules of the connection's own host hold on it. The control is its own host.
func TestConnectionsAreNotCoalesced(t *testing.T) {
	t.Parallel()
	r, placeholder := newRig(t, secrets.Terms{Hosts: []string{site, "other.example.com"}}, echo)
	for host, want := range map[string]int{site: 200, "other.example.com": 421} {
		request, err := http.NewRequest(http.MethodGet, "https://"+site+"/", nil)
		must(t, err)
		request.Host = host
		request.Header.Set("Authorization", "Bearer "+placeholder)
		answer, err := r.client.Do(request)
		must(t, err)
		answer.Body.Close()
		if answer.StatusCode != want || answer.ProtoMajor != 2 {
			t.Errorf("%s: %s %s", host, answer.Proto, answer.Status)
		}
		if names := answer.TLS.PeerCertificates[0].DNSNames; len(names) != 1 || names[0] != site {
			t.Errorf("the certificate is for %q", names)
		}
	}
	if n := r.used(); n != 1 {
		t.Errorf("%d uses", n)
	}
}

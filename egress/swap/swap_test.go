package swap

import (
	"encoding/base64"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

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
		if len(r.uses) != 5 || len(r.denied) != 0 {
			t.Errorf("%d uses, %+v", len(r.uses), r.denied)
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

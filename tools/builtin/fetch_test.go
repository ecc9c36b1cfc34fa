package builtin

import (
	"compress/gzip"
	"context"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/tools"
)

// site is a server on loopback, for every hop.
func site() http.Handler {
	m := http.NewServeMux()
	page := func(at, kind, content string) {
		m.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", kind)
			_, _ = io.WriteString(w, content)
		})
	}
	page("/page", "text/html; charset=utf-8", "<!doctype html><title>T</title><style>p{}</style><h1>A &amp;\n B</h1><p>one <b>two</b>three <a href='/x'>link</a>.<script>alert('<p>no')</script><ul><li>x<li>y</ul>")
	page("/json", "application/json", `{"a":1}`)
	page("/image", "image/png", "\x89PNG\xff")
	page("/latin", "text/plain", "a\xffb")
	for i := range 9 {
		m.HandleFunc(fmt.Sprintf("/hop%d", i), func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, fmt.Sprintf("/hop%d", i+1), http.StatusFound)
		})
	}
	for at, to := range map[string]string{"/file": "file:///etc/passwd", "/user": "http://u:p@127.0.0.1/", "/ftp": "ftp://127.0.0.1/"} {
		m.HandleFunc(at, func(w http.ResponseWriter, _ *http.Request) { w.Header().Set("Location", to); w.WriteHeader(302) })
	}
	m.HandleFunc("/endless", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		for r.Context().Err() == nil {
			if _, err := w.Write(make([]byte, 1<<16)); err != nil {
				return
			}
		}
	})
	m.HandleFunc("/bomb", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		w.Header().Set("Content-Encoding", "gzip")
		z := gzip.NewWriter(w)
		for range 64 {
			if _, err := z.Write(make([]byte, 1<<20)); err != nil {
				return
			}
		}
		_ = z.Close()
	})
	m.HandleFunc("/slow", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		_, _ = w.Write([]byte("x"))
		w.(http.Flusher).Flush()
		<-r.Context().Done()
	})
	m.HandleFunc("/headers", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("X-Bulk", strings.Repeat("x", maxHeaders+1))
	})
	m.HandleFunc("/asked", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "text/plain")
		fmt.Fprint(w, r.Method, r.Header.Get("X-Mine"), r.Header.Get("Cookie"))
	})
	return m
}

func TestFetch(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(site())
	defer server.Close()
	for _, row := range []struct {
		path      string
		arguments object
		want      string // of the body, or of the reason
		check     func(r FetchResult) bool
	}{
		{"/page", nil, "T\nA & B\none twothree link [/x] .\nx\ny", func(r FetchResult) bool { return r.Status == 200 && r.Encoding == "text" }},
		{"/page", object{"raw": true}, "<style>", nil},
		{"/json", nil, `{"a":1}`, func(r FetchResult) bool {
			return r.Bytes == 7 && !r.Truncated && r.Headers["content-type"] == "application/json"
		}},
		{"/image", nil, `content type "image/png"`, nil},
		{"/image", object{"binary": true}, "iVBOR/8=", func(r FetchResult) bool { return r.Encoding == "base64" && r.Bytes == 5 }},
		{"/latin", nil, "a\uFFFDb", nil},
		{"/gone", nil, "404 page not found", func(r FetchResult) bool { return r.Status == 404 }},
		{"/hop7", object{"max_redirects": 2}, "404", func(r FetchResult) bool {
			return len(r.Redirects) == 2 && strings.HasSuffix(r.URL, "/hop9")
		}},
		{"/hop0", nil, "", func(r FetchResult) bool { return r.Status == 302 && len(r.Redirects) == 3 }},
		{"/hop0", object{"max_redirects": 99}, "", func(r FetchResult) bool { return r.Status == 302 && len(r.Redirects) == maxHops }},
		{"/hop0", object{"max_redirects": 0}, "", func(r FetchResult) bool { return r.Status == 302 && len(r.Redirects) == 0 }},
		{"/file", nil, "only http and https", nil},
		{"/ftp", nil, "only http and https", nil},
		{"/user", nil, "no user or password", nil},
		{"/endless", object{"max_bytes": 100_000}, "\x00", func(r FetchResult) bool { return r.Truncated && r.Bytes == 100_000 && len(r.Body) < 100_000 }},
		{"/bomb", nil, "\x00", func(r FetchResult) bool { return r.Truncated && r.Bytes == body }},
		{"/slow", object{"timeout_s": 1}, "no whole answer within 1s", nil},
		{"/headers", nil, "headers", nil},
		{"/json", object{"method": "HEAD"}, "", func(r FetchResult) bool { return r.Status == 200 && r.Headers["content-length"] == "7" }},
		{"/asked", object{"method": "POST"}, "GET or HEAD", nil},
		{"/asked", object{"headers": object{"X-Mine": "1"}}, "GET1", nil},
		{"/asked", object{"headers": object{"host": "other"}}, "belongs to the connection", nil},
		{"/asked", object{"headers": object{"X": "a\r\nY: b"}}, "invalid header", nil},
	} {
		arguments := object{"url": server.URL + row.path}
		for name, value := range row.arguments {
			arguments[name] = value
		}
		began := time.Now()
		text, err := do("/", 64<<10, "fetch", arguments)
		var r FetchResult
		if err == nil {
			if err := json.Unmarshal([]byte(text), &r); err != nil {
				t.Errorf("%s: %v", row.path, err)
			}
			text = r.Body
		} else {
			text = err.Error()
		}
		if !strings.Contains(text, row.want) || row.check != nil && !row.check(r) || len(text) > 64<<10 {
			t.Errorf("%s %v: %.300q %+.300v", row.path, row.arguments, text, r)
		}
		if time.Since(began) > 20*time.Second {
			t.Errorf("%s takes %s", row.path, time.Since(began))
		}
	}
	for _, at := range []string{"file:///etc/passwd", "http://u:p@127.0.0.1/", "gopher://127.0.0.1/", "127.0.0.1", "http://", "http:///x", "http://[::1", "http://a b/"} {
		if _, err := do("/", 1<<16, "fetch", object{"url": at}); err == nil {
			t.Errorf("%s is fetched", at)
		} else if _, is := err.(*Invalid); !is {
			t.Errorf("%s: %v", at, err)
		}
	}
}

// The environment's certificates are read when the first connection is made: in a process of its
// own. The control has none.
func TestFetchTrustsTheEnvironmentsCertificates(t *testing.T) {
	if at := os.Getenv("CLOVE_TEST_FETCH"); at != "" {
		text, err := (&Box{Dir: "/", Most: 1 << 16}).Do(context.Background(), tools.Order{Tool: "fetch", Arguments: json.RawMessage(`{"url":"` + at + `/json"}`)})
		fmt.Println(text, err)
		return
	}
	t.Parallel()
	server := httptest.NewTLSServer(site())
	defer server.Close()
	file := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	for trusted, want := range map[string]string{file: `{\"a\":1}`, "/dev/null": "certificate"} {
		c := exec.Command(os.Args[0], "-test.run=^"+t.Name()+"$")
		c.Env = []string{"CLOVE_TEST_FETCH=" + server.URL, "SSL_CERT_FILE=" + trusted, "SSL_CERT_DIR=/nothing"}
		out, err := c.CombinedOutput()
		if err != nil || !strings.Contains(string(out), want) || trusted != file && strings.Contains(string(out), `{\"a\":1}`) {
			t.Errorf("%s: %s, %v", trusted, out, err)
		}
	}
}

func FuzzReadable(f *testing.F) {
	f.Add("<p>a<script>b</script>c<a href=x>d</a>")
	f.Add("<svg><svg></svg>x<!--")
	f.Fuzz(func(t *testing.T, page string) {
		if text := readable([]byte(page)); len(text) > 4*len(page)+16 {
			t.Errorf("%q becomes %q", page, text)
		}
	})
}

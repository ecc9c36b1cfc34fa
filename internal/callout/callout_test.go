package callout

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// The tests' own program becomes the commands.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == Argument {
		Main(os.Args[2:])
	}
	os.Exit(m.Run())
}

func self() agent.Owner {
	return agent.Owner{UID: uint32(os.Geteuid()), GID: uint32(os.Getegid())}
}

// A command gets the event on its input, and its own environment only.
func TestACommandGetsTheEvent(t *testing.T) {
	t.Setenv("SECRET", "of the caller")
	file := filepath.Join(t.TempDir(), "seen")
	c := Callout{Target: "cat >" + file + "; env >>" + file + "; pwd >>" + file, Owner: self(), Event: map[string]int{"used": 7}, Env: []string{"CLOVE_NAME=a b"}}
	if err := c.Do(context.Background()); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`{"used":7}`, "CLOVE_NAME=a b\n", path + "\n", "\n/\n"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%q is not in %s", want, text)
		}
	}
	if strings.Contains(string(text), "SECRET") {
		t.Errorf("it has the caller's environment: %s", text)
	}
}

// The error says how a command failed, with the beginning of what it wrote, and one that
// takes too long is killed with its children. Processes that it left in the background are
// not waited for.
func TestCommandsThatFail(t *testing.T) {
	t.Parallel()
	left := filepath.Join(t.TempDir(), "left")
	for target, want := range map[string]string{
		"exit 0": "",
		"sleep 1000 & echo $! >" + left + "; exit 0": "",
		"exit 3":                         "exit status 3",
		"echo no such person >&2; false": "exit status 1: no such person",
		"head -c 9999 /dev/zero | tr '\\0' x >&2; exit 2": "exit status 2: " + strings.Repeat("x", headMost),
	} {
		err := Callout{Target: target, Owner: self()}.Do(context.Background())
		if got := textOf(err); got != want {
			t.Errorf("%s: %q, want %q", target, got, want)
		}
	}
	if err := exec.Command("sh", "-c", "kill $(cat "+left+")").Run(); err != nil {
		t.Errorf("the process in the background: %v", err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
	defer cancel()
	began := time.Now()
	if err := (Callout{Target: "sleep 1000; true", Owner: self()}).Do(ctx); err == nil || time.Since(began) > Patience/2 {
		t.Errorf("%v after %s", err, time.Since(began))
	}
}

func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// A URL gets the event as a POST. A redirect is not followed, a mistake of the caller's is
// not repeated, and one of the server's is.
func TestAURLGetsTheEvent(t *testing.T) {
	t.Parallel()
	var calls atomic.Int32
	var body atomic.Value
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		text, _ := io.ReadAll(r.Body)
		body.Store(r.Method + " " + r.Header.Get("Content-Type") + " " + string(text))
		switch n := calls.Add(1); r.URL.Path {
		case "/away":
			http.Redirect(w, r, "/ok", http.StatusTemporaryRedirect)
		case "/wrong":
			w.WriteHeader(http.StatusNotFound)
		case "/second":
			if n == 1 {
				w.WriteHeader(http.StatusServiceUnavailable)
			}
		}
	}))
	defer server.Close()
	for path, want := range map[string]struct {
		calls int32
		err   string
	}{
		"/ok": {1, ""}, "/away": {1, "it answered with status 307"}, "/wrong": {1, "it answered with status 404"}, "/second": {2, ""},
	} {
		calls.Store(0)
		err := Callout{Target: server.URL + path, Owner: self(), Event: map[string]int{"used": 7}}.Do(context.Background())
		if textOf(err) != want.err || calls.Load() != want.calls || body.Load() != `POST application/json {"used":7}` {
			t.Errorf("%s: %v after %d calls, %v", path, err, calls.Load(), body.Load())
		}
	}
}

// The error of a URL that cannot be reached does not show it: it may hold a secret.
func TestAnErrorHidesTheURL(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	err := Callout{Target: "http://127.0.0.1:1/secret", Owner: self()}.Do(ctx)
	if err == nil || strings.Contains(err.Error(), "secret") {
		t.Errorf("%v", err)
	}
}

package main

import (
	"encoding/json"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// fakeCloved gives the answers that a test sets, and records the requests.
type fakeCloved struct {
	t       *testing.T
	path    string
	answers map[string]func(c *rpc.Conn, params json.RawMessage) (any, error)

	mu    sync.Mutex
	asked []rpc.Message

	// order is incremented on both sides of each request and answer: the race detector does
	// not count a socket as synchronisation, and the answers share the tests' variables.
	order atomic.Int64
}

// cloved starts a fake cloved, which the bench's commands find.
func (b *bench) cloved() *fakeCloved {
	b.t.Helper()
	f := &fakeCloved{t: b.t, path: filepath.Join(b.t.TempDir(), "s"), answers: map[string]func(*rpc.Conn, json.RawMessage) (any, error){}}
	listener, err := net.Listen("unix", f.path)
	if err != nil {
		b.t.Fatal(err)
	}
	var all sync.WaitGroup
	all.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			all.Go(func() { f.serve(rpc.New(conn)) })
		}
	})
	b.t.Cleanup(func() { listener.Close(); all.Wait() })
	b.daemon = f
	return f
}

func (f *fakeCloved) serve(c *rpc.Conn) {
	defer c.Close()
	for {
		m, err := c.Receive()
		if err != nil {
			return
		}
		f.order.Add(1)
		f.mu.Lock()
		f.asked = append(f.asked, m)
		f.mu.Unlock()
		serve := f.answers[m.Method]
		if serve == nil {
			_ = c.Respond(m.ID, nil, api.Failure(api.CodeMethod, "teach the fake", "there is no method %q", m.Method))
			continue
		}
		result, err := serve(c, m.Params)
		f.order.Add(1)
		if err != nil {
			_ = c.Respond(m.ID, nil, api.ErrorOf(err))
		} else {
			_ = c.Respond(m.ID, result, nil)
		}
	}
}

// answer sets the result of a method.
func (f *fakeCloved) answer(method string, result any) {
	f.answers[method] = func(*rpc.Conn, json.RawMessage) (any, error) { return result, nil }
}

// heard decodes the parameters of the last request of a method.
func (f *fakeCloved) heard(method string, into any) {
	f.t.Helper()
	f.mu.Lock()
	defer f.mu.Unlock()
	for i := len(f.asked) - 1; i >= 0; i-- {
		if f.asked[i].Method == method {
			if err := json.Unmarshal(f.asked[i].Params, into); err != nil {
				f.t.Fatal(err)
			}
			return
		}
	}
	f.t.Fatalf("cloved was not asked for %s", method)
}

// calls is how many requests of a method came.
func (f *fakeCloved) calls(method string) (count int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, m := range f.asked {
		if m.Method == method {
			count++
		}
	}
	return count
}

func TestDetach(t *testing.T) {
	b := newBench(t)
	f := b.cloved()
	f.answer(methods.RunStart.Name, api.RunResult{Reason: "it comes after db, which is queued"})
	b.host.UID = 1000 // a member of cloved's group needs no root
	status, stdout, stderr := b.clove("run", "-di", "--restart", "on-failure:3", "--after", "db", "--priority", "5", "--delay", "2s", "--schedule", "@daily", "--keep-files", "--name", "web", "--", "serve")
	var asked api.StartParams
	f.heard(methods.RunStart.Name, &asked)
	spec := asked.Spec
	if status != 0 || stdout != string(spec.ID)+"\n" || stderr != "clove: web waits: it comes after db, which is queued\n" {
		t.Errorf("%d, %q, %q", status, stdout, stderr)
	}
	if !spec.Detached || !spec.Stdin || spec.Restart != (agent.Restart{Policy: agent.RestartOnFailure, Max: 3}) ||
		len(spec.After) != 1 || spec.Priority != 5 || spec.Schedule != "@daily" || !spec.KeepFiles || asked.DelayNS != 2e9 || b.paths != 0 {
		t.Errorf("%+v", asked)
	}
}

func TestDetachRefuses(t *testing.T) {
	for line, says := range map[string]string{
		"--restart always -- x":                "only cloved",
		"--after db -- x":                      "only cloved",
		"--delay 1 -- x":                       "only cloved",
		"--schedule @daily -- x":               "only cloved",
		"--keep-files -- x":                    "only cloved",
		"-d --schedule= -- x":                  "empty",
		"--priority 1 -- x":                    "only cloved",
		"-d --restart sometimes -- x":          "not a restart policy",
		"-d --restart never:3 -- x":            "not a restart policy",
		"-d --restart always:0 -- x":           "not a restart policy",
		"-d --rm --restart always -- x":        "removed when it ends",
		"-d --priority much -- x":              "not a priority",
		"-d --delay soon -- x":                 "not a duration",
		"-d --result out.json -- x":            "does not go together",
		"-d --network-log out.json -- x":       "does not go together",
		"-d -- x":                              "cloved does not run",
		"-d --restart on-failure --rm -- true": "removed when it ends",
	} {
		b := newBench(t)
		if stderr := b.refuse(strings.Fields(line)...); !strings.Contains(stderr, says) || !strings.Contains(stderr, "hint:") {
			t.Errorf("%s: %s", line, stderr)
		}
	}
}

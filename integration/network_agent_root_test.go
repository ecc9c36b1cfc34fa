//go:build root

package integration

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"clove.run/clove/integration/probe"
	"clove.run/clove/internal/testhost"
)

// agentWord makes this test binary an agent: a Go program that ignores proxy variables. It
// runs in the sandbox, and outside as its own control.
const (
	agentWord   = "as-agent"
	agentInside = "/agent"
)

func TestMain(m *testing.M) {
	if len(os.Args) > 2 && os.Args[1] == agentWord {
		if err := agentPrograms[os.Args[2]](os.Args[3:]); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

var agentPrograms = map[string]func(args []string) error{
	"attempt": attemptAll,
	"idle":    holdConnections,
	"ask":     askMany,
	"listen":  listenInside,
	"steps":   fetchByStep,
	"flush":   flushRules,

	"calls":    passCalls,
	"reserve":  reserveAtOnce,
	"rounds":   callInRounds,
	"time":     timeCalls,
	"flood":    flood,
	"burn":     burn,
	"crowd":    crowdSocket,
	"overfill": overfill,
	"mutate":   mutateLines,
	"hand":     handConnection,
	"take":     takeConnection,
	"forge":    forgeSender,
	"hold":     holdOne,
	"use":      useToken,
}

// attempt is one thing that an agent tries. Exactly one of the groups of fields is used.
type attempt struct {
	Name string
	URL  string // is fetched

	Address string   // is connected to; over UDP with Datagram
	Parts   [][]byte // are written one by one
	UDP     bool

	Within time.Duration // the wait for an answer; 0: attemptTime, scaled for this machine

	Hello *hello // begins TLS, to Address

	Question string // is sent to the name server at Address, whatever listens there
	Type     uint16
	TCP      bool
}

// attemptTime is long enough: a gate refuses at once.
const attemptTime = 3 * time.Second

// attemptAll reads attempts from the standard input and prints a line for each.
func attemptAll([]string) error {
	var attempts []attempt
	if err := json.NewDecoder(os.Stdin).Decode(&attempts); err != nil {
		return err
	}
	for _, a := range attempts {
		said, err := a.make()
		r := probe.Result{Probe: a.Name, OK: strings.Contains(said, reached), Detail: said}
		var errno syscall.Errno
		if errors.As(err, &errno) {
			r.Errno = fmt.Sprint(int(errno))
		}
		if err != nil {
			r.Detail += " | " + err.Error()
		}
		if err := json.NewEncoder(os.Stdout).Encode(r); err != nil {
			return err
		}
	}
	return nil
}

func (a attempt) make() (said string, err error) {
	switch {
	case a.URL != "":
		return fetch(a.URL, a.Within)
	case a.Hello != nil:
		return a.Hello.say(a.Address, a.Within)
	case a.Question != "":
		return ask(a)
	}
	network := "tcp"
	if a.UDP {
		network = "udp"
	}
	conn, err := net.DialTimeout(network, a.Address, max(a.Within, attemptTime))
	if err != nil {
		return "", err
	}
	defer conn.Close()
	return converse(conn, a.Within, a.Parts...)
}

// fetch ignores proxy variables, and shows the status and the body.
func fetch(url string, within time.Duration) (string, error) {
	client := http.Client{Timeout: within, Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get(url)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	body, err := io.ReadAll(io.LimitReader(response.Body, 64<<20))
	if len(body) > 400 {
		body = fmt.Appendf(body[:400], "… %d bytes", len(body))
	}
	return fmt.Sprintf("%d %s", response.StatusCode, body), err
}

// converse writes part by part and returns what the other side sends, until it closes, sends
// nothing for too long, or has sent the word reached.
func converse(conn net.Conn, within time.Duration, parts ...[]byte) (string, error) {
	conn.SetDeadline(time.Now().Add(within))
	if tcp, ok := conn.(*net.TCPConn); ok {
		tcp.SetNoDelay(true)
	}
	for _, part := range parts {
		if _, err := conn.Write(part); err != nil {
			return "", err
		}
	}
	var said bytes.Buffer
	buffer := make([]byte, 4096)
	for !strings.Contains(said.String(), reached) && said.Len() < 1<<20 {
		size, err := conn.Read(buffer)
		said.Write(buffer[:size])
		if err == io.EOF {
			break
		}
		if err != nil {
			return said.String(), err
		}
	}
	return said.String(), nil
}

// self returns the flags that bind this program into the sandbox, and more flags.
func self(more ...string) []string {
	path, err := os.Executable()
	if err != nil {
		panic(err)
	}
	return append([]string{"-v", path + ":" + agentInside + ":ro"}, more...)
}

// attemptOutside is the control: the attempts without a sandbox.
func (n *internet) attemptOutside(t *testing.T, attempts []attempt) map[string]probe.Result {
	t.Helper()
	path, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(t.Context(), patience())
	defer cancel()
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, path, agentWord, "attempt")
	cmd.Stdin, cmd.Stdout, cmd.Stderr = bytes.NewReader(encoded(t, attempts)), &out, os.Stderr
	if err := n.here.Do(cmd.Start); err != nil {
		t.Fatal(err)
	}
	if err := cmd.Wait(); err != nil {
		t.Fatalf("control: %v\n%s", err, &out)
	}
	return attacked(t, out.Bytes())
}

// attemptInside makes the attempts in one sandbox.
func (n *internet) attemptInside(t *testing.T, flags []string, attempts []attempt) (map[string]probe.Result, result) {
	t.Helper()
	r := n.h.agentWith(string(encoded(t, attempts)), self(flags...), agentInside, agentWord, "attempt")
	if r.code != 0 {
		t.Fatalf("the attempts did not run to their end: exit %d\n%s%s", r.code, r.stdout, r.stderr)
	}
	return attacked(t, []byte(r.stdout)), r
}

// encoded tells the program, which cannot see the lane, how long to wait.
func encoded(t *testing.T, attempts []attempt) []byte {
	t.Helper()
	attempts = slices.Clone(attempts)
	for i := range attempts {
		attempts[i].Within = cmp.Or(attempts[i].Within, testhost.Patience(attemptTime))
	}
	text, err := json.Marshal(attempts)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// held makes the attempts outside, where each must succeed, and inside, where none may, and
// checks that nothing left the host except to the allowed ends. It returns what was sent for
// the attempts inside, and the run.
func (n *internet) held(t *testing.T, flags []string, attempts []attempt, ends ...string) ([]packet, result) {
	t.Helper()
	controls := slices.Clone(attempts)
	for i := range controls {
		controls[i].Within = 0 // outside, their answers come quickly
	}
	for name, r := range n.attemptOutside(t, controls) {
		if !r.OK {
			t.Errorf("control: %s: %q", name, r.Detail)
		}
	}
	n.zone.forget()
	c := n.capture(t)
	inside, r := n.attemptInside(t, flags, attempts)
	for name, r := range inside {
		if r.OK {
			t.Errorf("%s: reached %q", name, r.Detail)
		}
	}
	if len(inside) != len(attempts) {
		t.Errorf("%d of %d attempts were made", len(inside), len(attempts))
	}
	n.gateLived(t, r)
	return c.onlyTo(ends...), r
}

// passes makes attempts inside that must all succeed: allowed targets work.
func (n *internet) passes(t *testing.T, flags []string, attempts []attempt) result {
	t.Helper()
	inside, r := n.attemptInside(t, flags, attempts)
	n.gateLived(t, r)
	for _, a := range attempts {
		if got := inside[a.Name]; !got.OK {
			t.Errorf("%s: not reached, %q\n%s", a.Name, got.Detail, r.stderr)
		}
	}
	return r
}

// gateLived checks that the gate has not ended, which could look like a refusal.
func (n *internet) gateLived(t *testing.T, r result) {
	t.Helper()
	if use := r.record.Network; use != nil && use.Lost != "" {
		t.Errorf("the gate was lost: %s\n%s", use.Lost, r.stderr)
	}
}

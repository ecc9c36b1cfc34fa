//go:build root

package integration

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"golang.org/x/sys/unix"

	"clove.run/clove/daemon/traces/tracetest"
)

// again starts the daemon again with the settings that changed meanwhile.
func (d *cloved) again() {
	d.t.Helper()
	d.stop(unix.SIGTERM)
	d.serve()
}

// freeAddress returns a loopback address on which nothing listens.
func freeAddress(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	return listener.Addr().String()
}

// scrape gets /metrics over TCP, or over a Unix socket.
func scrape(t *testing.T, network, address, query string) string {
	t.Helper()
	text, err := scrapeBy(func() (net.Conn, error) { return net.Dial(network, address) }, query)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func scrapeBy(dial func() (net.Conn, error), query string) (string, error) {
	transport := &http.Transport{DisableKeepAlives: true, DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }}
	response, err := (&http.Client{Transport: transport, Timeout: patience()}).Get("http://clove/metrics" + query)
	if err != nil {
		return "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return string(text), err
}

// wantMetrics scrapes until every line is there.
func wantMetrics(t *testing.T, address string, lines ...string) {
	t.Helper()
	deadline := time.Now().Add(patience())
	for _, line := range lines {
		for text := ""; !strings.Contains(text, "\n"+line+"\n"); text = scrape(t, "tcp", address, "") {
			if time.Now().After(deadline) {
				t.Fatalf("there is no %q in\n%s", line, text)
			}
		}
	}
}

// Agents of every kind are counted, and a restart of cloved counts nothing twice; each user
// gets figures of its own agents only, over the Unix socket only.
func TestMetricsOfRealAgents(t *testing.T) {
	d := newClovedFor(t, groupName)
	address, socket := freeAddress(t), filepath.Join(filepath.Dir(d.socket), "metrics.sock")
	d.settings = "metrics_address: " + address + "\nmetrics_socket: " + socket + "\n"
	d.again()
	d.detach("long", "sleep 1000")
	if r := d.as(memberUID, []uint32{groupID}, "run", "-d", "--name", "members", "--", "sleep", "1000"); r.code != 0 {
		t.Fatal(r.stderr)
	}
	if r := d.clove("run", "--rm", "--timeout", "1s", "--stop-timeout", "0", "--", "sleep", "1000"); r.code != 124 {
		t.Fatalf("%d, %s", r.code, r.stderr)
	}
	d.clove("run", "--rm", "--pids-limit", "16", "--", "sh", "-c", "for i in $(seq 40); do sleep 100 & done; true")
	d.clove("run", "--rm", "--network", "allowlist", "--allow", "192.0.2.1:1", "--", "python3", "-c",
		// It waits for the refusal: if the agent ended at once, the gate might not have seen
		// the connection.
		"import socket; s = socket.socket(); s.settimeout(5); s.connect_ex(('192.0.2.7', 9)) or s.recv(1)")
	wantMetrics(t, address, "clove_starts_total 5", `clove_agents{state="running"} 2`, `clove_ends_total{status="timeout"} 1`,
		`clove_limit_hits_total{limit="wall-clock"} 1`, `clove_limit_hits_total{limit="pids"} 1`, "clove_network_denials_total 1", "clove_start_seconds_count 5",
		`clove_api_requests_total{code="ok",method="run.start"} 2`)
	if text := scrape(t, "tcp", address, "?agents=1"); strings.Contains(text, "long") {
		t.Errorf("any client sees agents: %s", text)
	}
	all := scrape(t, "unix", socket, "?agents=1")
	if !strings.Contains(all, `clove_agent_pids{agent="long"} `) || !strings.Contains(all, `clove_agent_pids{agent="`+members("members")+`"} `) {
		t.Error(all)
	}
	for who, ids := range map[string][2]uint32{"the owner": {memberUID, groupID}, "another member": {otherUID, groupID}, "a stranger": {strangerUID, strangerUID}} {
		text, err := scrapeBy(func() (net.Conn, error) { return dialAs(ids[0], ids[1], socket) }, "?agents=1")
		if errors.Is(err, unix.EACCES) != (who == "a stranger") {
			t.Errorf("%s: %v", who, err)
		}
		if own := strings.Contains(text, `{agent="members"}`); own != (who == "the owner") || strings.Contains(text, `{agent="long"}`) {
			t.Errorf("%s hears %s", who, text)
		}
		if strings.Contains(text, "clove_agents{") == (who == "a stranger") {
			t.Errorf("%s: %q", who, text)
		}
	}
	d.again()
	wantMetrics(t, address, "clove_starts_total 0", `clove_agents{state="running"} 2`)
	d.stop(unix.SIGKILL)
	d.serve()
	wantMetrics(t, address, "clove_starts_total 0", `clove_agents{state="running"} 2`)
}

// dialAs connects with the ids of another user: its thread has them, and ends with its
// goroutine.
func dialAs(uid, gid uint32, socket string) (conn net.Conn, err error) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread()
		for _, change := range [][4]uintptr{{unix.SYS_SETGROUPS, 0, 0, 0}, {unix.SYS_SETRESGID, uintptr(gid), uintptr(gid), uintptr(gid)},
			{unix.SYS_SETRESUID, uintptr(uid), uintptr(uid), uintptr(uid)}} {
			if _, _, errno := unix.RawSyscall(change[0], change[1], change[2], change[3]); errno != 0 {
				err = errno
				return
			}
		}
		conn, err = net.Dial("unix", socket)
	}()
	<-done
	return conn, err
}

// All spans of an agent arrive at a collector as one trace, although cloved was killed in
// between; no secret does.
func TestTracesOfARealAgent(t *testing.T) {
	collector := tracetest.New(t)
	d := newCloved(t)
	d.env = []string{"OTEL_EXPORTER_OTLP_ENDPOINT=" + collector.URL, "OTEL_BSP_SCHEDULE_DELAY=50", "OTEL_EXPORTER_OTLP_HEADERS=key=planted-header"}
	d.again()
	t.Setenv("TRACEPARENT", "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01")
	d.detach("traced", "echo planted-output; sleep 1000 # planted-argument", "--env", "TOKEN=planted-value")
	// The span of the call ends after the start's, and spans that are not yet exported are
	// lost with cloved.
	for _, name := range []string{"run.start", "queue", "launch.rootfs", "launch.create", "launch.orders"} {
		await(t, collector, name)
	}
	started := await(t, collector, "start")
	d.stop(unix.SIGKILL)
	d.serve()
	d.ok("stop", "-t", "0s", "traced")
	life, stop := await(t, collector, "run"), await(t, collector, "run.stop")
	spans, _ := collector.Now()
	for _, name := range []string{"run.start", "queue", "start", "launch.rootfs", "launch.create", "launch.orders", "run"} {
		if span := tracetest.Find(spans, name); span == nil || !bytes.HasPrefix(span.TraceId, []byte{0x0a, 0xf7, 0x65}) {
			t.Errorf("%s: %v", name, span)
		}
	}
	if !bytes.Equal(life.ParentSpanId, started.ParentSpanId) || tracetest.Text(life, "clove.status") != "killed" || life.StartTimeUnixNano > started.EndTimeUnixNano {
		t.Errorf("the life %v, after the start %v", life, started)
	}
	if len(stop.Links) != 1 {
		t.Errorf("%v", stop)
	}
	if raw, _ := collector.Raw(); bytes.Contains(raw, []byte("planted")) {
		t.Errorf("a secret is in %q", raw)
	}
}

// await waits for a span.
func await(t *testing.T, c *tracetest.Collector, name string) *trace.Span {
	t.Helper()
	deadline := time.After(patience())
	for {
		spans, more := c.Now()
		if span := tracetest.Find(spans, name); span != nil {
			return span
		}
		select {
		case <-more:
		case <-deadline:
			t.Fatalf("no span %s came", name)
		}
	}
}

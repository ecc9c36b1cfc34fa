package daemon

import (
	"context"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/daemon/metrics"
	"clove.run/clove/daemon/supervisor"
	"clove.run/clove/internal/rpc"
)

// ask requests a path over a connection that dial makes.
func ask(t *testing.T, path string, dial func() (net.Conn, error)) (status int, body string) {
	t.Helper()
	transport := &http.Transport{DialContext: func(context.Context, string, string) (net.Conn, error) { return dial() }, DisableKeepAlives: true}
	response, err := (&http.Client{Transport: transport}).Get("http://clove" + path)
	must(t, err)
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	must(t, err)
	return response.StatusCode, string(text)
}

// Both addresses serve metrics, and only the Unix socket, whose peer the kernel reports, names
// agents.
func TestScrapes(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	socket := filepath.Join(r.dir, "m")
	address, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: socket, Net: "unix"})
	must(t, err)
	r.d.options.Scrapes = Scrapes{Address: address, Socket: listener}
	r.add("named", agent.Owner{}, agent.StateRunning)
	r.serve()
	tcp := func() (net.Conn, error) { return net.Dial("tcp", address.Addr().String()) }
	unix := func() (net.Conn, error) { return net.Dial("unix", socket) }
	for what, row := range map[string]struct {
		dial func() (net.Conn, error)
		path string
		code int
		says string
	}{
		"tcp": {tcp, metrics.Path, 200, `clove_agents{state="running"} 1`}, "tcp, agents": {tcp, metrics.Path + "?agents=1", 403, "metrics_socket"},
		"unix": {unix, metrics.Path, 200, `clove_agents{state="running"} 1`}, "unix, agents": {unix, metrics.Path + "?agents=1", 200, "clove_agents_left_out"},
	} {
		code, body := ask(t, row.path, row.dial)
		if code != row.code || !strings.Contains(body, row.says) || strings.Contains(body, "named") {
			t.Errorf("%s: %d, %s", what, code, body)
		}
	}
}

// A caller that may not connect to the API is refused here too. Control: without that rule it
// would be served.
func TestScrapesAreForMembers(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	inner := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })
	for what, row := range map[string]struct {
		peer any
		code int
	}{"root": {rootCaller, 418}, "a member": {caller{principal: principal{owner: agent.Owner{UID: 7, GID: 50}}}, 418}, "another": {otherCaller, 403}, "unknown": {nil, 403}} {
		request := httptest.NewRequest(http.MethodGet, "/", nil)
		request = request.WithContext(context.WithValue(request.Context(), scraper{}, row.peer))
		w := httptest.NewRecorder()
		r.d.membersOnly(50, inner).ServeHTTP(w, request)
		if w.Code != row.code {
			t.Errorf("%s: %d", what, w.Code)
		}
	}
}

// supervise plays the supervisor of a run, which answers one request with stats.
func (r *rig) supervise(id agent.ID, memory int64) {
	r.t.Helper()
	dir := filepath.Join(r.dir, "run", string(id))
	must(r.t, os.MkdirAll(dir, 0o700))
	listener, err := net.Listen("unix", filepath.Join(dir, supervisor.SocketName))
	must(r.t, err)
	r.t.Cleanup(func() { listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			c := rpc.New(conn)
			if m, err := c.Receive(); err == nil {
				_ = c.Respond(m.ID, api.StatsResult{Stats: agent.Stats{MemoryBytes: &memory}}, nil)
			}
			c.Close()
		}
	}()
}

// Only the owner of an agent, and root, get its figures.
func TestUsageIsOfWhatTheCallerSees(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.supervise(r.add("mine", ownerCaller.owner, agent.StateRunning).Spec.ID, 7)
	r.supervise(r.add("not-mine", otherCaller.owner, agent.StateRunning).Spec.ID, 8)
	r.add("just-ended", ownerCaller.owner, agent.StateRunning) // its supervisor answers no more
	r.add("ended", ownerCaller.owner, agent.StateEnded)
	for what, row := range map[string]struct {
		peer caller
		want []string
	}{"root": {rootCaller, []string{"1000/mine", "1001/not-mine"}}, "owner": {ownerCaller, []string{"mine"}}, "unknown": {caller{principal: principal{owner: agent.Owner{UID: 9}}}, nil}} {
		agents, leftOut := r.d.usageOf(context.WithValue(within(t), scraper{}, row.peer))
		var names []string
		for _, a := range agents {
			names = append(names, a.Name)
			if want := map[string]int64{"mine": 7, "1000/mine": 7, "1001/not-mine": 8}[a.Name]; *a.Stats.MemoryBytes != want {
				t.Errorf("%s has %d", a.Name, *a.Stats.MemoryBytes)
			}
		}
		slices.Sort(names)
		if !slices.Equal(names, row.want) || leftOut != 0 {
			t.Errorf("%s: %v, %d left out", what, names, leftOut)
		}
	}
	if agents, _ := r.d.usageOf(within(t)); agents != nil {
		t.Errorf("an unknown caller sees %v", agents)
	}
}

func TestListenScrapes(t *testing.T) {
	t.Parallel()
	s, err := ListenScrapes(DefaultConfig())
	if err != nil || s.Address != nil || s.Socket != nil {
		t.Errorf("%+v, %v", s, err)
	}
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	must(t, err)
	defer taken.Close()
	config := DefaultConfig()
	config.MetricsAddress = taken.Addr().String()
	if _, err := ListenScrapes(config); agent.KindOf(err) != agent.KindBusy {
		t.Errorf("a port that is taken: %v", err)
	}
}

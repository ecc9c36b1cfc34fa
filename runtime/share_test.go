package runtime

import (
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// The loop gets the newest standing, with the notifications of all that it has not seen.
func TestTheNewestStandingHasAllNotices(t *testing.T) {
	t.Parallel()
	s := &share{standings: make(chan api.Standing, 1)}
	s.changed(api.Standing{Start: 1, Notices: []api.Notice{{Method: "a"}}})
	if first := s.first(); first.Start != 1 {
		t.Errorf("%+v", first)
	}
	s.changed(api.Standing{Start: 2, Net: []api.NetRule{{EgressRule: agent.EgressRule{Target: "x"}}}})
	s.changed(api.Standing{Start: 3, Notices: []api.Notice{{Method: "b"}, {Method: "c"}}})
	want := api.Standing{Start: 3, Notices: []api.Notice{{Method: "a"}, {Method: "b"}, {Method: "c"}}}
	if got := <-s.standings; !reflect.DeepEqual(got, want) {
		t.Errorf("%+v", got)
	}
	s.changed(api.Standing{Start: 4})
	if got := <-s.standings; got.Start != 4 || len(got.Notices) != 0 {
		t.Errorf("%+v", got)
	}
}

// Rules of net grants are in force until they expire, by the wall clock of that moment.
func TestExpiredRulesAreNotOpen(t *testing.T) {
	t.Parallel()
	now := time.Now()
	a, b := agent.EgressRule{Target: "a"}, agent.EgressRule{Target: "b"}
	s := &share{net: []api.NetRule{{EgressRule: a, Expires: now}, {EgressRule: b}}}
	for after, want := range map[time.Duration][]agent.EgressRule{-time.Hour: {a, b}, -1: {a, b}, 0: {b}, time.Hour: {b}} {
		if got := s.open(now.Add(after)); !reflect.DeepEqual(got, want) {
			t.Errorf("%s after its expiry: %v", after, got)
		}
	}
}

// Granted rules stand behind those of the run, which stay as they are; a run without a
// network has only these.
func TestGrantedRules(t *testing.T) {
	t.Parallel()
	given, granted := []agent.EgressRule{{Target: "a"}}, []agent.EgressRule{{Target: "b"}}
	for _, row := range []struct {
		share   *share
		network string
		want    string
		rules   int
	}{
		{nil, agent.NetworkNone, agent.NetworkNone, 1},
		{&share{}, agent.NetworkNone, agent.NetworkNone, 1},
		{&share{granted: granted}, agent.NetworkNone, agent.NetworkAllowlist, 2},
		{&share{granted: granted}, agent.NetworkPublic, agent.NetworkPublic, 2},
	} {
		spec := agent.Spec{Network: row.network, Egress: agent.Egress{Rules: given[:1:1]}}
		got := row.share.withGranted(spec)
		if got.Network != row.want || len(got.Egress.Rules) != row.rules || len(spec.Egress.Rules) != 1 {
			t.Errorf("%+v becomes %s, %+v", row.share, got.Network, got.Egress.Rules)
		}
	}
}

// The socket lies alone in a directory that only its maker writes to, however long its path
// is. Everybody may connect, and who sends is known from the first byte.
func TestListenForAgent(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), strings.Repeat("long", 40), "services")
	if err := os.MkdirAll(filepath.Dir(dir), 0o700); err != nil {
		t.Fatal(err)
	}
	file, err := listenInServices(dir, agentSocketName)
	if err != nil {
		t.Fatal(err)
	}
	for path, mode := range map[string]os.FileMode{dir: os.ModeDir | 0o755, filepath.Join(dir, agentSocketName): os.ModeSocket | 0o666} {
		if info, err := os.Stat(path); err != nil || info.Mode() != mode {
			t.Errorf("%s: %v, %v", path, info, err)
		}
	}
	if second, err := listenInServices(dir, agentSocketName); err == nil {
		second.Close()
		t.Error("a directory that is there is taken")
	}
	listener, err := net.FileListener(file)
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	file.Close()
	at, err := os.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer at.Close()
	caller, err := net.Dial("unix", filepath.Join("/proc/self/fd", fmt.Sprint(at.Fd()), agentSocketName))
	if err != nil {
		t.Fatal(err)
	}
	defer caller.Close()
	if _, err := io.WriteString(caller, "x"); err != nil { // before it is accepted
		t.Fatal(err)
	}
	conn, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	oob := make([]byte, 64)
	n, oobn, _, _, err := conn.(*net.UnixConn).ReadMsgUnix(make([]byte, 1), oob)
	if err != nil || n != 1 {
		t.Fatal(n, err)
	}
	messages, err := unix.ParseSocketControlMessage(oob[:oobn])
	if err != nil || len(messages) != 1 {
		t.Fatalf("%+v, %v", messages, err)
	}
	if sender, err := unix.ParseUnixCredentials(&messages[0]); err != nil || int(sender.Uid) != os.Getuid() || int(sender.Pid) != os.Getpid() {
		t.Errorf("%+v, %v", sender, err)
	}
}

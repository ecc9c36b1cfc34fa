package expect

import (
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/probe"
)

func TestFoundIsCompared(t *testing.T) {
	t.Parallel()
	gated := policies.Standard()
	gated.Network, gated.Egress.HostPorts = agent.NetworkAllowlist, []uint16{5432}
	closed := policies.Standard()
	denied := func(target string) []agent.Denial {
		return []agent.Denial{{Kind: "network", Target: target, Rule: "no-rule"}}
	}
	errno := func(e unix.Errno) probe.Found { return probe.Found{Errno: int(e), Detail: e.Error()} }
	done := probe.Found{Done: true, Detail: "connected"}
	returned := func(e unix.Errno) probe.Found { return probe.Found{Done: true, Errno: int(e), Detail: e.Error()} }
	for name, row := range map[string]struct {
		spec    agent.Spec
		entry   Entry
		found   probe.Found
		denials []agent.Denial
		want    Answer
	}{
		"opened":                       {closed, Entry{Read: "/x"}, done, nil, Allow},
		"not opened":                   {closed, Entry{Read: "/x"}, errno(unix.ENOENT), nil, Deny},
		"granted":                      {closed, Entry{Tool: "x"}, done, nil, Allow},
		"untried":                      {closed, Entry{Syscall: "exit_group"}, probe.Found{Untried: true}, nil, Unknown},
		"carried out":                  {closed, Entry{Syscall: "openat"}, returned(unix.EFAULT), nil, Allow},
		"not permitted":                {closed, Entry{Syscall: "mount"}, returned(unix.EPERM), nil, Deny},
		"no such call":                 {closed, Entry{Syscall: "mount"}, returned(unix.ENOSYS), nil, Deny},
		"killed":                       {closed, Entry{Syscall: "mount"}, probe.Found{Killed: true}, nil, Deny},
		"no way out":                   {closed, Entry{Connect: "10.0.0.1"}, errno(unix.ENETUNREACH), nil, Deny},
		"own loopback":                 {closed, Entry{Connect: "127.0.0.1:9"}, errno(unix.ECONNREFUSED), nil, Deny},
		"connected, and allowed":       {gated, Entry{Connect: "10.0.0.1"}, done, denied("tcp://10.0.0.2:443"), Allow},
		"connected, and refused":       {gated, Entry{Connect: "10.0.0.1"}, done, denied("tcp://10.0.0.1:443"), Deny},
		"refused on another port":      {gated, Entry{Connect: "10.0.0.1:80"}, done, denied("tcp://10.0.0.1:443"), Allow},
		"refused over UDP":             {gated, Entry{Connect: "10.0.0.1"}, done, denied("udp://10.0.0.1:443"), Allow},
		"the name is refused":          {gated, Entry{Connect: "API.example.com"}, errno(0), denied("dns://api.example.com"), Deny},
		"its address is refused":       {gated, Entry{Connect: "api.example.com"}, probe.Found{Done: true, Addresses: []string{"10.0.0.1:443"}}, denied("tcp://10.0.0.1:443"), Deny},
		"no process listens":           {gated, Entry{Connect: "10.0.0.1"}, errno(unix.ECONNREFUSED), nil, Allow},
		"the filter refuses a socket":  {gated, Entry{Connect: "10.0.0.1"}, errno(unix.EPERM), nil, Deny},
		"a port of the host's":         {gated, Entry{Connect: "127.0.0.1:5432"}, done, nil, Allow},
		"a port of the host's refused": {gated, Entry{Connect: "localhost:5432"}, done, denied("host-port://127.0.0.1:5432"), Deny},
		"the gate is lost":             {gated, Entry{Connect: "10.0.0.1"}, done, []agent.Denial{{Target: "everything"}}, Deny},
	} {
		d, err := NewDecider(row.spec)
		if err != nil {
			t.Fatal(err)
		}
		if got := d.Found([]Entry{row.entry}, []probe.Found{row.found}, agent.Record{Denials: row.denials}); got[0].Got != row.want {
			t.Errorf("%s: %+v, want %s", name, got[0], row.want)
		}
		if got := d.Found([]Entry{row.entry}, nil, agent.Record{Status: agent.StatusOOM}); got[0].Got != Unknown || got[0].OK {
			t.Errorf("%s: without an answer: %+v", name, got[0])
		}
	}
}

func TestTriesHaveNumbers(t *testing.T) {
	t.Parallel()
	d, err := NewDecider(policies.Standard())
	if err != nil {
		t.Fatal(err)
	}
	tries, err := d.Tries([]Entry{{Connect: "udp://[2001:db8::1]"}, {Syscall: "getpid", Args: []Argument{7}}, {Syscall: "nonsense"}})
	if err != nil || !tries[0].UDP || tries[0].What != "[2001:db8::1]:443" || tries[1].Number != unix.SYS_GETPID || tries[1].Args[0] != 7 || tries[2].Number < 1<<16 {
		t.Errorf("%+v, %v", tries, err)
	}
}

//go:build root

package integration

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
)

// TestPublishedPorts: a port of the agent can be reached where the flag says, and nowhere
// else.
func TestPublishedPorts(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	for _, row := range []struct {
		flag    string
		near    []string // reached from the host
		far     []string // reached from the second namespace
		neither []string
	}{
		{flag: "-p=9001:8080", near: []string{"127.0.0.1:9001"}, neither: []string{ownAddress + ":9001", ownPublicAddress + ":9001", "127.0.0.1:8080"}},
		{flag: "-p=" + ownAddress + ":9002:8080", near: []string{ownAddress + ":9002"}, far: []string{ownAddress + ":9002"},
			neither: []string{"127.0.0.1:9002", ownPublicAddress + ":9002"}},
		{flag: "-p=0.0.0.0:9003:8080", near: []string{"127.0.0.1:9003"}, far: []string{ownAddress + ":9003", ownPublicAddress + ":9003"}},
		{flag: "-p=[" + ownAddress6 + "]:9004:8080", far: []string{"[" + ownAddress6 + "]:9004"}, neither: []string{ownAddress + ":9004", "[::1]:9004"}},
		{flag: "--allow=api.example.com", neither: []string{"127.0.0.1:8080", ownAddress + ":8080"}}, // the control
	} {
		for _, listen := range []string{"127.0.0.1:8080", "[::1]:8080"} {
			t.Run(row.flag+" "+listen, func(t *testing.T) {
				r := h.start(self(row.flag), agentInside, agentWord, "listen", listen)
				if line := r.line(); line != "up" {
					t.Fatalf("%q\n%s", line, &r.stderr)
				}
				defer r.wait()
				for _, address := range row.near {
					if said, err := n.call(n.here, address); err != nil || !strings.Contains(said, reached) {
						t.Errorf("from the host, %s: %q, %v", address, said, err)
					}
				}
				for _, address := range row.far {
					if said, err := n.call(n.there, address); err != nil || !strings.Contains(said, reached) {
						t.Errorf("from the world, %s: %q, %v", address, said, err)
					}
				}
				for _, address := range row.neither {
					if said, err := n.call(n.here, address); err == nil {
						t.Errorf("from the host, %s: %q", address, said)
					}
				}
			})
		}
	}
}

// TestAPublishedPortIsNoWayOut: connections come in through the gate, and none go out.
func TestAPublishedPortIsNoWayOut(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	n.held(t, []string{"-p=9001:8080"}, web(siteAddress, "["+siteAddress6+"]", lanAddress, "api.example.com", ownAddress))
}

// TestAPortIsPublishedOnce: if a port cannot be had, the run does not start.
func TestAPortIsPublishedOnce(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	first := h.start(self("-p=9001:8080"), agentInside, agentWord, "listen", ":8080")
	if line := first.line(); line != "up" {
		t.Fatalf("%q\n%s", line, &first.stderr)
	}
	second := h.clove("run", "--rm", "-p=9001:8080", "--", "true")
	if second.code != agent.ExitStartFailed || !strings.Contains(second.stderr, "9001") {
		t.Errorf("exit %d\n%s", second.code, second.stderr)
	}
	first.wait()
	if third := h.clove("run", "--rm", "-p=9001:8080", "--", "true"); third.code != 0 {
		t.Errorf("once it is free: exit %d\n%s", third.code, third.stderr)
	}
}

// TestOnePortOfTheHost: by its number, and no other; for other targets the mode's rules apply.
func TestOnePortOfTheHost(t *testing.T) {
	h := newHost(t)
	n := newInternet(t, h)
	speak := func(address string) attempt {
		return attempt{Name: address, Address: address, Parts: [][]byte{[]byte("GET / HTTP/1.0\r\n\r\n")}}
	}
	n.passes(t, []string{"--host-port=5432"}, []attempt{speak("127.0.0.1:5432"), speak("[::1]:5432"), speak("localhost:5432")})
	n.passes(t, []string{"--host-port=80", "--host-port=7", "--allow=api.example.com"},
		[]attempt{speak("127.0.0.1:80"), speak("127.0.0.1:7"), {Name: "site", URL: siteURL}})
	others := []attempt{speak("127.0.0.1:80"), speak("[::1]:80"), speak("127.0.0.1:22"), speak(ownAddress + ":5432"),
		speak(ownAddress + ":80"), speak(ownPublicAddress + ":5432"), speak(lanAddress + ":5432"), speak(siteAddress + ":80")}
	// Packets to the service itself are allowed: only other destinations would be an escape.
	n.held(t, []string{"--host-port=5432"}, others)
}

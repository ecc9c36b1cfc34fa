//go:build root

package oci

import (
	"net"
	"os"
	"strings"
	"testing"

	"clove.run/clove/internal/ocitest"
)

// TestNoSocketOfTheHostsComesIn: into a container with network rules, at its start or later.
// Without rules it does.
func TestNoSocketOfTheHostsComesIn(t *testing.T) {
	n := newNode(t)
	n.serve()
	var hosts *os.File
	n.network.DoOutside(func() error {
		conn, err := net.ListenPacket("udp", "127.0.0.1:0")
		if err != nil {
			return err
		}
		defer conn.Close()
		hosts, err = conn.(*net.UDPConn).File()
		return err
	})
	t.Cleanup(func() { hosts.Close() })
	for name, row := range map[string]struct {
		annotations []string
		refused     bool
	}{"with rules": {allowing(ocitest.AllowedAddress), true}, "without": {nil, false}} {
		try := func(args ...string) {
			t.Helper()
			command := n.Command(t.Context(), args...)
			command.ExtraFiles = []*os.File{hosts}
			text, err := command.CombinedOutput()
			refused := err != nil && strings.Contains(string(text), "a socket of another network")
			executed := err == nil && string(text) == "executed\n"
			if refused != row.refused || executed == row.refused {
				t.Errorf("%s, %s: %s, %v", name, args[0], text, err)
			}
		}
		const script = "[ -S /proc/self/fd/3 ] && echo executed"
		try("run", "--preserve-fds", "1", "--bundle", n.bundle(ocitest.ServerAddress, script, n.in(row.annotations...)), "one")
		if n.ruled() {
			t.Errorf("%s: rules are left", name)
		}
		n.Must("create", "--bundle", n.bundle(ocitest.ServerAddress, "exec sleep 1000", n.in(row.annotations...)), "one")
		n.Must("start", "one")
		try("exec", "--preserve-fds", "1", "one", "sh", "-c", script)
		n.Must("delete", "--force", "one")
	}
}

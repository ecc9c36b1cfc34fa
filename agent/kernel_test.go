package agent

import (
	"slices"
	"strings"
	"testing"
)

// A run has a socket where its agent has something to ask, and no part in what agents share
// where it has none of its own.
func TestWhoHasASocket(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		Kernel
		socket, shares bool
	}{
		{Kernel{}, false, false},
		{Kernel{AtEnd: "pause", OnDenial: "end", Namespace: "acme"}, false, false},
		{Kernel{Socket: true}, true, true},
		{Kernel{Grants: []string{"tool:a"}}, true, true},
		{Kernel{Budgets: []string{"reviews=1"}}, true, true},
		{Kernel{Budgets: []string{"cpu_ms=1", "wall_ms=1s", "write_bytes=1G", "net_bytes=1G"}}, false, true},
		{Kernel{Budgets: []string{"cpu_ms=1", "tokens=1"}}, true, true},
	} {
		if row.HasSocket() != row.socket || row.Shares() != row.shares {
			t.Errorf("%+v: socket %t, shares %t", row.Kernel, row.HasSocket(), row.Shares())
		}
		for _, network := range []string{NetworkNone, NetworkHost, NetworkAllowlist} {
			s := Spec{Network: network, Kernel: row.Kernel}
			if want := network == NetworkAllowlist || network == NetworkNone && row.socket; s.Gated() != want {
				t.Errorf("%s, %+v: gated %t", network, row.Kernel, s.Gated())
			}
		}
	}
}

func TestDenial(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]struct {
		what  string
		after int
	}{"": {"deny", 1}, "deny": {"deny", 1}, "pause": {"pause", 1}, "end": {"end", 1}, "end-after:1": {"end", 1}, "end-after:2147483647": {"end", 1<<31 - 1}} {
		if what, after, err := (Kernel{OnDenial: text}).Denial(); what != want.what || after != want.after || err != nil {
			t.Errorf("%q: %s, %d, %v", text, what, after, err)
		}
	}
	for _, text := range []string{"no", "end-after", "end-after:", "end-after:0", "end-after:-1", "end-after:+1", "end-after:01", "end-after:1x", "end-after:2147483648", "deny:1", "end:1", "END", " end"} {
		if _, _, err := (Kernel{OnDenial: text}).Denial(); err == nil || KindOf(err) != KindInvalid {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestGoodNamespaces(t *testing.T) {
	t.Parallel()
	for _, namespace := range []string{"", "acme", "acme/research", "a/b/c/d.e-f_g", strings.Join(slices.Repeat([]string{"abc"}, 64), "/")} {
		s := whole()
		s.Kernel.Namespace = namespace
		if err := s.Validate(); err != nil {
			t.Errorf("%q: %v", namespace, err)
		}
	}
}

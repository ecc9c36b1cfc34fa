package policies

import (
	"testing"

	"clove.run/clove/agent"
)

func TestStandardDeniesByDefault(t *testing.T) {
	t.Parallel()
	s := Standard()
	if s.Network != agent.NetworkNone || len(s.Env) != 0 || s.User.UID == 0 {
		t.Errorf("standard gives something away: %+v", s)
	}
	if s.Seccomp.Profile != "standard" || s.Files.Rootfs != "" || len(s.Files.Binds) != 0 {
		t.Errorf("standard gives something away: %+v", s)
	}
	l := s.Limits
	if l.MemoryBytes == 0 || l.Pids == 0 || l.DiskBytes == 0 || l.ShmBytes == 0 {
		t.Errorf("a limit that always holds is missing: %+v", l)
	}
	if l.MemorySwapBytes != l.MemoryBytes {
		t.Errorf("swap is on: %+v", l)
	}
}

func TestFingerprintIsStableAndSensitive(t *testing.T) {
	t.Parallel()
	first, second := Standard(), Standard()
	if first.Policy.SHA256 != second.Policy.SHA256 || len(first.Policy.SHA256) != 64 {
		t.Errorf("fingerprints %q and %q", first.Policy.SHA256, second.Policy.SHA256)
	}
	second.Policy = agent.Policy{}
	second.Limits.Pids++
	if fingerprint(second) == first.Policy.SHA256 {
		t.Error("another limit, the same fingerprint")
	}
}

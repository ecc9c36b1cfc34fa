package linked

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// host answers for this machine's own files.
type host struct{}

func (host) Open(at string) (File, string, error) {
	real, err := filepath.EvalSymlinks(at)
	if err != nil {
		return nil, "", err
	}
	file, err := os.Open(real)
	return file, real, err
}

func TestX(t *testing.T) {
	for _, p := range []string{"/usr/bin/python3", "/usr/bin/gcc", "/bin/sh", "/usr/bin/git"} {
		s := NewSet(host{})
		real, err := s.Add(p)
		t.Log(real, err, s.Paths(), s.Missing())
	}
	_ = slices.Sorted[string]
}

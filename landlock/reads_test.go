package landlock

import (
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

// TestReadsAreHeld: what is not readable cannot be moved, linked or executed into being read. What
// was open before stays open. Each attempt that is refused passes without rules.
func TestReadsAreHeld(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	at := func(name string) string { return filepath.Join(dir, name) }
	for _, sub := range []string{"open", "closed"} {
		if err := os.Mkdir(at(sub), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, name := range []string{"a", "b", "c"} {
			if err := os.WriteFile(at(sub+"/"+name), []byte("#!/bin/true\n"), 0o755); err != nil {
				t.Fatal(err)
			}
		}
	}
	before, err := os.Open(at("closed/a"))
	if err != nil {
		t.Fatal(err)
	}
	defer before.Close()
	reads := func(name string) func() error {
		return func() error { _, err := os.ReadFile(at(name)); return err }
	}
	attempts := []struct {
		name    string
		do      func() error
		refused unix.Errno
	}{
		{"read a file of the list", reads("open/a"), 0},
		{"write where nothing is read", func() error { return os.WriteFile(at("closed/new"), nil, 0o644) }, 0},
		{"facts of a file", func() error { _, err := os.Stat(at("closed/a")); return err }, 0},
		{"read what was open before", func() error { _, err := before.ReadAt(make([]byte, 2), 0); return err }, 0},
		{"read a file", reads("closed/a"), unix.EACCES},
		{"list a folder", func() error { _, err := os.ReadDir(at("closed")); return err }, unix.EACCES},
		{"execute", func() error { return exec.Command(at("closed/a")).Run() }, unix.EACCES},
		{"link", func() error { return os.Link(at("closed/a"), at("open/linked")) }, unix.EXDEV},
		{"move", func() error { return os.Rename(at("closed/b"), at("open/moved")) }, unix.EXDEV},
		{"move beside", func() error { return os.Rename(at("open/a"), at("closed/back")) }, 0},
	}
	rules := &Rules{Files: []Rule{{"/usr", Read | Execute}, {"/bin", Read | Execute}, {"/dev", Read | Write}, {at("open"), Read | Execute}, {dir, Write | Make}}}
	under(t, rules, func() {
		for _, a := range attempts {
			if err := a.do(); a.refused == 0 && err != nil || a.refused != 0 && !errors.Is(err, a.refused) {
				t.Errorf("%s: %v", a.name, err)
			}
		}
	})
	under(t, nil, func() { // control
		for _, a := range attempts {
			if err := a.do(); a.refused != 0 && err != nil {
				t.Errorf("without rules: %s: %v", a.name, err)
			}
		}
	})
}

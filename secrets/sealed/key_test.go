package sealed

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/agent"
)

const value = "a-value-that-is-kept-here"

// What is sealed is opened with the same key, also by the next process, and with no other: a copy without the key gives nothing.
func TestAnotherKeyOpensNothing(t *testing.T) {
	path := filepath.Join(t.TempDir(), "etc", "secret.key")
	first := NewKeeper(path)
	sealed, err := first.Seal([]byte(value))
	if err != nil || bytes.Contains(sealed, []byte(value)) {
		t.Fatalf("%q, %v", sealed, err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v, %v", info, err)
	}
	if got, err := NewKeeper(path).Open(sealed); err != nil || string(got) != value {
		t.Errorf("control: %q, %v", got, err)
	}
	other := NewKeeper(filepath.Join(t.TempDir(), "secret.key"))
	if _, err := other.Open(sealed); agent.FailureOf(err).Hint == "" {
		t.Errorf("without a key: %v", err)
	}
	if _, err := other.Seal([]byte(value)); err != nil {
		t.Fatal(err)
	}
	if got, err := other.Open(sealed); err == nil || !strings.Contains(err.Error(), "another key") {
		t.Errorf("%q, %v", got, err)
	}
	sealed[len(sealed)-1] ^= 1
	if got, err := first.Open(sealed); err == nil || strings.Contains(err.Error(), value) {
		t.Errorf("damaged: %q, %v", got, err)
	}
}

// A key that others may read or replace, or that is none, is refused, and nothing of it is in the error.
func TestAKeyIsRootsAlone(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	if _, err := NewKeeper(path).Seal([]byte(value)); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func() error{
		"others read it": func() error { return os.Chmod(path, 0o644) },
		"it is a link": func() error {
			if err := os.Rename(path, path+".real"); err != nil {
				return err
			}
			return os.Symlink(path+".real", path)
		},
		"it is no key": func() error { return os.WriteFile(path, []byte("AGE-SECRET-KEY-1NONE\n"), 0o600) },
	} {
		os.Remove(path)
		if err := os.WriteFile(path, text, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := change(); err != nil {
			t.Fatal(err)
		}
		_, err := NewKeeper(path).Seal([]byte(value))
		if err == nil || strings.Contains(err.Error(), "KEY-1NONE") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// systemd's credential comes before the file.
func TestACredential(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, Credential)
	sealed, err := NewKeeper(path).Seal([]byte(value))
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv("CREDENTIALS_DIRECTORY", dir)
	k := NewKeeper(filepath.Join(t.TempDir(), "none"))
	if got, err := k.Open(sealed); err != nil || string(got) != value {
		t.Errorf("%q, %v", got, err)
	}
}

// Of processes that make the key at once, all have the same.
func TestOneKeyIsMade(t *testing.T) {
	path := filepath.Join(t.TempDir(), "secret.key")
	keepers := make([]*Keeper, 8)
	sealed := make([][]byte, len(keepers))
	var all sync.WaitGroup
	for i := range keepers {
		all.Go(func() {
			keepers[i] = NewKeeper(path)
			sealed[i], _ = keepers[i].Seal([]byte(value))
		})
	}
	all.Wait()
	for i, text := range sealed {
		if got, err := keepers[(i+1)%len(keepers)].Open(text); err != nil || string(got) != value {
			t.Errorf("%d: %q, %v", i, got, err)
		}
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(path), ".secret*")); err != nil || len(left) > 0 {
		t.Errorf("%q, %v", left, err)
	}
}

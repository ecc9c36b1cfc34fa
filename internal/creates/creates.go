// Package creates keeps notes of OCI containers while they are made, for `clove check`.
// clove-oci writes a note before it makes a container's cgroup, and removes it when the engine
// can see the container. A note that stays, of a create that was killed, is where the cgroup
// can be found: engines have their containers in directories of which clove knows nothing.
//
// It makes and removes no cgroup.
package creates

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/descriptor"
)

// Name is the directory of the notes in clove's run directory.
const Name = "creates"

// Note is one container that is being made.
type Note struct {
	Directory string            `json:"directory"` // the container's own: the engine's root and the id
	Cgroup    json.RawMessage   `json:"cgroup"`    // its name and place, for the maker alone
	Paths     map[string]string `json:"paths"`     // of its cgroup: controller, "" for the v2 tree, to directory
}

// file is the note's name. The directory's path may be longer than a name can be.
func file(register, directory string) string {
	sum := sha256.Sum256([]byte(directory))
	return filepath.Join(register, hex.EncodeToString(sum[:16]))
}

// Begin writes the note. The create counts as alive until held is closed.
func Begin(register string, n Note) (held *os.File, err error) {
	text, err := json.Marshal(n)
	if err != nil {
		return nil, err
	}
	// The mode is for the run directory, which the roots of sandboxes must pass through, if there
	// is none yet.
	if err := os.MkdirAll(register, 0o711); err != nil {
		return nil, err
	}
	held, err = os.OpenFile(file(register, n.Directory), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o600)
	if err != nil {
		return nil, err
	}
	// Locked before there is text, without which Abandoned does not count it.
	if err = descriptor.Lock(held, unix.LOCK_EX); err == nil {
		_, err = held.Write(text)
	}
	if err != nil {
		held.Close()
		return nil, err
	}
	return held, nil
}

// Find returns the note of a container's directory; fs.ErrNotExist if there is none, or half a
// one: its create was killed before it made a cgroup.
func Find(register, directory string) (Note, error) {
	return read(file(register, directory))
}

// End removes the note of a container's directory, if there is one.
func End(register, directory string) error {
	if err := os.Remove(file(register, directory)); !errors.Is(err, os.ErrNotExist) {
		return err
	}
	return nil
}

// Abandoned returns the notes whose create has ended.
func Abandoned(register string) (abandoned []Note, err error) {
	entries, err := os.ReadDir(register)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, err
	}
	for _, entry := range entries {
		path := filepath.Join(register, entry.Name())
		if n, err := read(path); err == nil && !held(path) {
			abandoned = append(abandoned, n)
		} else if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
	}
	return abandoned, nil
}

func read(path string) (n Note, err error) {
	text, err := os.ReadFile(path)
	if err == nil && json.Unmarshal(text, &n) != nil {
		err = &os.PathError{Op: "read", Path: path, Err: os.ErrNotExist}
	}
	return n, err
}

// held reports whether the create of a note lives. One whose note was removed meanwhile has
// ended well.
func held(path string) bool {
	note, err := os.Open(path)
	if err != nil {
		return true
	}
	defer note.Close()
	return errors.Is(descriptor.Lock(note, unix.LOCK_SH|unix.LOCK_NB), unix.EWOULDBLOCK)
}

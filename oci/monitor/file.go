package monitor

import (
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
)

// owner identifies the container that a record belongs to. An id is unique only below one
// engine's root, so the directory is part of it.
type owner struct{ id, directory string }

// ownedRecord is a record as it is on disk, with the container that it is of.
type ownedRecord struct {
	agent.Record
	Directory string `json:"directory"` // the container's
}

func (a ownedRecord) owner() owner { return owner{string(a.ID), a.Directory} }

// recordPath is the file for the record of a container. annotation is only its name,
// so that the author of a pod cannot choose which file root writes; records is the
// node's directory, in place of oci.RecordsDir. recordPath makes that directory and
// refuses a name that another container's record has.
func recordPath(records, annotation string, whose owner) (string, error) {
	if err := os.MkdirAll(records, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(records, strings.ReplaceAll(filepath.Base(annotation), oci.RecordID, whose.id))
	// Both are checked now: which of them it becomes is known only at the end, too late to refuse.
	for _, name := range names(path, whose.id) {
		free, err := isFree(name, whose)
		if errors.Is(err, unix.ENAMETOOLONG) {
			return "", &agent.Error{Kind: agent.KindInvalid, Message: "no file can have a name as long as " + filepath.Base(name),
				Hint: "shorten the name: the container's id goes behind it where two have the same one"}
		}
		if err != nil {
			return "", err
		}
		if !free {
			return "", &agent.Error{Kind: agent.KindConflict, Message: name + " is another container's record",
				Hint: "remove it, or put " + oci.RecordID + " into the name, for the container's id, which is one's only below one root"}
		}
	}
	return path, nil
}

// names are those that the record of container id may have: the second one is used
// if the first belongs to another container by then.
func names(path, id string) [2]string {
	return [2]string{path, strings.TrimSuffix(path, ".json") + "." + id + ".json"}
}

// isFree reports whether the container may write path: nothing is there, or its own
// record, from before an engine started it again.
func isFree(path string, whose owner) (bool, error) {
	there, err := readRecord(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case errors.Is(err, errNoRecord):
		return false, nil
	}
	return err == nil && there.owner() == whose, err
}

// writtenBefore finds the record of this very start of the container. A monitor may
// have written it and been killed before it noted that; a later monitor knows less.
func writtenBefore(path string, a ownedRecord) (there ownedRecord, found bool) {
	for _, name := range names(path, string(a.ID)) {
		there, err := readRecord(name)
		if err == nil && there.owner() == a.owner() && there.Started.Equal(a.Started) {
			return there, true
		}
	}
	return ownedRecord{}, false
}

// errNoRecord means that the file is not a record of clove's.
var errNoRecord = errors.New("it is no record")

// readRecord returns errNoRecord for a file that is not JSON, and for a link.
func readRecord(path string) (a ownedRecord, err error) {
	// O_NOFOLLOW and O_NONBLOCK: the directory is root's, but a link or a FIFO with a
	// record's name must neither lead elsewhere nor hang this process.
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.ELOOP {
		return a, errNoRecord
	}
	if err != nil {
		return a, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if json.NewDecoder(file).Decode(&a) != nil {
		return a, errNoRecord
	}
	return a, nil
}

// writeRecord writes the whole record to path, or nothing. If another container's
// record has that name by now, the container's id is added to it.
func writeRecord(path string, a ownedRecord) error {
	text, err := json.MarshalIndent(a, "", "  ")
	if err != nil {
		return err
	}
	temporary := filepath.Join(filepath.Dir(path), temporaryName(a.Directory))
	if err := writeTemporary(temporary, append(text, '\n')); err != nil {
		return fmt.Errorf("cannot write the record: %w", err)
	}
	err = place(temporary, path, a.owner())
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write the record: %w", err), os.Remove(temporary))
	}
	return nil
}

// temporaryName is unique to the container and always the same, so that the next
// monitor overwrites what a killed one left. No annotation's name begins with a dot.
func temporaryName(directory string) string {
	sum := sha256.Sum256([]byte(directory))
	return fmt.Sprintf(".record-%x", sum[:16])
}

// writeTemporary overwrites a file of the same name: it is what a killed monitor of this
// container has left.
func writeTemporary(path string, text []byte) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_TRUNC|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return err
	}
	_, err = file.Write(text)
	// Synced before the rename, so that a crash of the host leaves a whole record or none.
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(err, os.Remove(path))
	}
	return nil
}

// place renames a record to the first name that is free.
func place(temporary, path string, whose owner) error {
	for _, name := range names(path, whose.id) {
		placed, err := placeAt(temporary, name, whose)
		if placed || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s and the name with its id behind it are other containers': remove one", path)
}

// placeAt renames without replacing first, because two monitors may choose one name at the
// same time. The second rename replaces only the container's own record of an earlier
// start.
func placeAt(temporary, path string, whose owner) (placed bool, err error) {
	err = unix.Renameat2(unix.AT_FDCWD, temporary, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	free, err := isFree(path, whose)
	if err != nil || !free {
		return false, err
	}
	err = os.Rename(temporary, path)
	return err == nil, err
}

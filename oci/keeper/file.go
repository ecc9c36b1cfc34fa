package keeper

import (
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

// recordPath is where the record of a container goes, for what the annotation
// says. directory is the node's, in place of oci.RecordsDir: an annotation only
// ever gives the name. It makes directory and refuses a name that another's
// record has.
func recordPath(directory, annotation, id string) (string, error) {
	if err := os.MkdirAll(directory, 0o700); err != nil {
		return "", err
	}
	path := filepath.Join(directory, strings.ReplaceAll(filepath.Base(annotation), oci.RecordID, id))
	// Which of them it becomes is only known in the end, when nothing can be refused any more.
	for _, name := range names(path, id) {
		free, err := isFree(name, id)
		if errors.Is(err, unix.ENAMETOOLONG) {
			return "", &agent.Error{Kind: agent.KindInvalid, Message: "no file can have a name as long as " + filepath.Base(name),
				Hint: "shorten the name: the container's id goes behind it where two have the same one"}
		}
		if err != nil {
			return "", err
		}
		if !free {
			return "", &agent.Error{Kind: agent.KindConflict, Message: name + " is another container's record",
				Hint: "remove it, or put " + oci.RecordID + " into the name, for the container's id"}
		}
	}
	return path, nil
}

// names are those that the record of the container id may have, the second one
// where the first turns out to be another's.
func names(path, id string) [2]string {
	return [2]string{path, strings.TrimSuffix(path, ".json") + "." + id + ".json"}
}

// isFree tells whether the container id may write path: nothing is there, or
// what the same container left, which an engine started again.
func isFree(path, id string) (bool, error) {
	there, err := readRecord(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return true, nil
	case errors.Is(err, errNoRecord):
		return false, nil
	}
	return err == nil && string(there.ID) == id, err
}

// writtenBefore finds the record of this very start of the container. The keeper
// that wrote it may have been killed before it could say so on disk, and no later
// one knows as much.
func writtenBefore(path string, record agent.Record) (there agent.Record, found bool) {
	for _, name := range names(path, string(record.ID)) {
		there, err := readRecord(name)
		if err == nil && there.ID == record.ID && there.Started.Equal(record.Started) {
			return there, true
		}
	}
	return agent.Record{}, false
}

// errNoRecord means that what is there is none of clove's.
var errNoRecord = errors.New("it is no record")

func readRecord(path string) (record agent.Record, err error) {
	fd, err := unix.Open(path, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err == unix.ELOOP {
		return record, errNoRecord
	}
	if err != nil {
		return record, &os.PathError{Op: "open", Path: path, Err: err}
	}
	file := os.NewFile(uintptr(fd), path)
	defer file.Close()
	if json.NewDecoder(file).Decode(&record) != nil {
		return record, errNoRecord
	}
	return record, nil
}

// writeRecord leaves a whole record at path, or none. Of two containers with
// one name the first has it, and the other's id goes into its own.
func writeRecord(path string, record agent.Record) error {
	text, err := json.MarshalIndent(record, "", "  ")
	if err != nil {
		return err
	}
	temporary, err := writeTemporary(filepath.Dir(path), append(text, '\n'))
	if err != nil {
		return fmt.Errorf("cannot write the record: %w", err)
	}
	err = place(temporary, path, string(record.ID))
	if err != nil {
		return errors.Join(fmt.Errorf("cannot write the record: %w", err), os.Remove(temporary))
	}
	return nil
}

func writeTemporary(directory string, text []byte) (path string, err error) {
	file, err := os.CreateTemp(directory, ".record-") // no annotation's name begins with a dot
	if err != nil {
		return "", err
	}
	_, err = file.Write(text)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return "", errors.Join(err, os.Remove(file.Name()))
	}
	return file.Name(), nil
}

// place gives a record the first name that is not another's.
func place(temporary, path, id string) error {
	for _, name := range names(path, id) {
		placed, err := placeAt(temporary, name, id)
		if placed || err != nil {
			return err
		}
	}
	return fmt.Errorf("%s and the name with its id behind it are other containers': remove one", path)
}

func placeAt(temporary, path, id string) (placed bool, err error) {
	err = unix.Renameat2(unix.AT_FDCWD, temporary, unix.AT_FDCWD, path, unix.RENAME_NOREPLACE)
	if !errors.Is(err, fs.ErrExist) {
		return err == nil, err
	}
	free, err := isFree(path, id)
	if err != nil || !free {
		return false, err
	}
	err = os.Rename(temporary, path)
	return err == nil, err
}

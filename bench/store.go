package bench

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/internal/descriptor"
)

// The files of a folder of results.
const (
	ResultsFile  = "results.jsonl"
	ManifestFile = "manifest.json"
	AttemptsDir  = "attempts"
)

// lineMost bounds a line of results.jsonl.
const lineMost = 4 << 20

// ReadManifest reads the manifest of a folder of results.
func ReadManifest(dir string) (Manifest, error) {
	var m Manifest
	text, err := os.ReadFile(filepath.Join(dir, ManifestFile))
	if errors.Is(err, fs.ErrNotExist) {
		return m, invalid("name a folder that clove bench run wrote", "%s has no %s", dir, ManifestFile)
	}
	if err == nil {
		err = json.Unmarshal(text, &m)
	}
	switch {
	case err != nil:
		return m, invalid("", "cannot read %s: %v", filepath.Join(dir, ManifestFile), err)
	case m.Version != ManifestVersion:
		return m, invalid("this clove reads version 1", "%s has version %d", filepath.Join(dir, ManifestFile), m.Version)
	}
	return m, nil
}

// WriteManifest replaces it.
func WriteManifest(dir string, m Manifest) error {
	text, err := json.MarshalIndent(m, "", "  ")
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(dir, ManifestFile), 0o644, append(text, '\n'))
}

// ReadResults returns the valid lines in their order; of one attempt only the last. A line
// that is cut, as a power cut leaves it, counts as absent; cut says how many there are.
func ReadResults(dir string) (results []Result, cut int, err error) {
	file, err := os.Open(filepath.Join(dir, ResultsFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	if err != nil {
		return nil, 0, err
	}
	defer file.Close()
	return decodeResults(file)
}

func decodeResults(from io.Reader) (results []Result, cut int, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, lineMost)
	at := map[string]int{}
	for lines.Scan() {
		if len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		var r Result
		if json.Unmarshal(lines.Bytes(), &r) != nil || r.Attempt == "" {
			cut++
			continue
		}
		if r.Version != ResultVersion {
			return nil, 0, invalid("this clove reads version 1", "%s has a line of version %d", ResultsFile, r.Version)
		}
		if i, seen := at[r.Attempt]; seen {
			results[i] = r
			continue
		}
		at[r.Attempt] = len(results)
		results = append(results, r)
	}
	return results, cut, lines.Err()
}

// AppendResult adds one line and waits until it is on the disk. A line that was cut before
// is ended first.
func AppendResult(file *os.File, r Result) error {
	line, err := json.Marshal(r)
	if err != nil {
		return err
	}
	if _, err := file.Write(append(line, '\n')); err != nil {
		return err
	}
	return file.Sync()
}

// OpenResults opens results.jsonl for AppendResult, for one bench at a time. A last line that
// was cut is ended, so that it does not spoil the next one.
func OpenResults(dir string) (*os.File, error) {
	file, err := os.OpenFile(filepath.Join(dir, ResultsFile), os.O_RDWR|os.O_CREATE|os.O_APPEND, 0o644)
	if err != nil {
		return nil, err
	}
	if err := descriptor.Lock(file, unix.LOCK_EX|unix.LOCK_NB); err != nil {
		file.Close()
		return nil, &agent.Error{Kind: agent.KindBusy, Step: "bench", Message: "another clove bench writes to " + dir, Hint: "wait for its end, or name another folder with --results", Err: err}
	}
	info, err := file.Stat()
	if err == nil && info.Size() > 0 {
		last := make([]byte, 1)
		if _, err = file.ReadAt(last, info.Size()-1); err == nil && last[0] != '\n' {
			_, err = file.Write([]byte("\n"))
		}
	}
	if err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

func invalid(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "bench", Message: fmt.Sprintf(format, values...), Hint: hint}
}

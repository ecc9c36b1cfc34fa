package probe

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Name is the file name of the program, in the folder of clove's binaries.
const Name = "clove-probe"

// Result is one line of the program's output: how one attempt ended.
type Result struct {
	Probe  string `json:"probe"`
	OK     bool   `json:"ok"`    // the attack succeeded
	Errno  string `json:"errno"` // "EPERM", or the signal that ended it, "SIGSYS"
	Detail string `json:"detail"`
}

// Succeeded is the outcome of an attack that worked.
const Succeeded = "ok"

// Outcome is Succeeded, or the error's name.
func (r Result) Outcome() string {
	if r.OK {
		return Succeeded
	}
	return r.Errno
}

// Path returns the path of the program: the one in CLOVE_BIN_DIR if it exists,
// otherwise a fresh build in dir. A machine without gcc needs the first.
func Path(dir string) (string, error) {
	if bin := os.Getenv("CLOVE_BIN_DIR"); bin != "" {
		path := filepath.Join(bin, Name)
		if _, err := os.Stat(path); err == nil {
			return path, nil
		}
	}
	folder, err := exec.Command("go", "list", "-f", "{{.Dir}}", "clove.run/clove/integration/probe").Output()
	if err != nil {
		return "", fmt.Errorf("cannot find the probe's sources: %w", err)
	}
	path := filepath.Join(dir, Name)
	output, err := exec.Command(filepath.Join(strings.TrimSpace(string(folder)), "build.sh"), path).CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("cannot build the probe: %w\n%s", err, output)
	}
	return path, nil
}

// Parse reads the program's output, one result by name. An unknown field is an error:
// the program and this package must be of one version.
func Parse(output []byte) (map[string]Result, error) {
	results := map[string]Result{}
	decoder := json.NewDecoder(bytes.NewReader(output))
	decoder.DisallowUnknownFields()
	for {
		var r Result
		err := decoder.Decode(&r)
		if errors.Is(err, io.EOF) {
			return results, nil
		}
		if err != nil {
			return nil, fmt.Errorf("cannot read the probe's output: %w\n%s", err, output)
		}
		results[r.Probe] = r
	}
}

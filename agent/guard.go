package agent

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/internal/atomicfile"
)

// Guard is the request for network rules in the network namespace of an OCI container. A
// guard is the process that enforces them: the container's broker.
type Guard struct {
	// Directory is the container's state directory on the host. GuardStateFile and
	// GuardLogFile are written there and are removed with it.
	Directory string `json:"directory"`
	PID       int    `json:"pid"`   // the container's first process
	Start     uint64 `json:"start"` // its start time, field 22 of proc_pid_stat(5): detects a reused pid
	// Network is NetworkNone, NetworkAllowlist or NetworkPublic.
	Network string       `json:"network"`
	Rules   []EgressRule `json:"rules"`
}

// Files of a guard in the container's directory.
const (
	GuardStateFile = "network.json"
	GuardLogFile   = "network.log" // the first denial of each target, and errors of name resolution: one JSON object a line
)

// Owner identifies the container among all containers since boot: a pid may be reused, a
// pid with its start time is not.
func (g Guard) Owner() string { return fmt.Sprintf("%d-%d", g.PID, g.Start) }

// Policy is a digest of the rules that the gate enforces. Two requests with the same rules
// have the same digest, in whatever order and from whatever source.
func (g Guard) Policy() string {
	lines := []string{g.Network}
	for _, r := range g.Rules {
		lines = append(lines, fmt.Sprintf("%t %s", r.Deny, r.Target)) // without the source
	}
	// The mode stays first; the order of the rules means nothing, because deny beats allow
	// in any order.
	slices.Sort(lines[1:])
	digest := sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "\n")))
	return hex.EncodeToString(digest[:16])
}

// GuardState is what `clove-oci delete` needs to remove a guard's rules, also after a crash
// of the guard or of cloved.
type GuardState struct {
	Namespace string `json:"namespace"` // device and inode of the network namespace: unique while it exists
	Owner     string `json:"owner"`     // Guard.Owner of the rules; rules of another owner are not removed
	PID       int    `json:"pid"`       // of the guard process; 0: the rules need none
	Start     uint64 `json:"start"`     // as Guard.Start
}

// WriteGuardState replaces the state file in the container's directory atomically.
func WriteGuardState(directory string, s GuardState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(directory, GuardStateFile), 0o600, text)
}

// ReadGuardState returns an error that is fs.ErrNotExist where no guard was requested.
func ReadGuardState(directory string) (s GuardState, err error) {
	text, err := os.ReadFile(filepath.Join(directory, GuardStateFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

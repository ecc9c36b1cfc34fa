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

// Guard asks for rules in the network namespace of a container that an engine
// made.
type Guard struct {
	// Directory is the container's own on the host. GuardStateFile and
	// GuardLogFile are written there, and go with it.
	Directory string `json:"directory"`
	PID       int    `json:"pid"`   // the container's first process
	Start     uint64 `json:"start"` // when it began, field 22 of proc_pid_stat(5): no other process is meant
	// Network is NetworkNone, NetworkAllowlist or NetworkPublic.
	Network string       `json:"network"`
	Rules   []EgressRule `json:"rules"`
}

// The files of a guard in the container's directory.
const (
	GuardStateFile = "network.json"
	GuardLogFile   = "network.log" // the first denial of each target, and what keeps names from resolving: one line of JSON each
)

// Owner names the container among all that there are since boot.
func (g Guard) Owner() string { return fmt.Sprintf("%d-%d", g.PID, g.Start) }

// Policy names what the gate is told, the same for all whom it is the same for.
func (g Guard) Policy() string {
	lines := []string{g.Network}
	for _, r := range g.Rules {
		lines = append(lines, fmt.Sprintf("%t %s", r.Deny, r.Target)) // whoever said so
	}
	slices.Sort(lines[1:])
	digest := sha256.Sum256([]byte(strings.Join(slices.Compact(lines), "\n")))
	return hex.EncodeToString(digest[:16])
}

// GuardState is what takes a guard back, whoever died.
type GuardState struct {
	Namespace string `json:"namespace"` // device and inode: that of no other one while it exists
	Owner     string `json:"owner"`     // whose the rules are there; another's are not this container's to take back
	PID       int    `json:"pid"`       // of the guard; 0: rules that need none
	Start     uint64 `json:"start"`     // as Guard.Start
}

// WriteGuardState puts the state into the container's directory, whole or not at all.
func WriteGuardState(directory string, s GuardState) error {
	text, err := json.Marshal(s)
	if err != nil {
		return err
	}
	return atomicfile.Write(filepath.Join(directory, GuardStateFile), 0o600, text)
}

// ReadGuardState gives an error of fs.ErrNotExist where no guard was asked for.
func ReadGuardState(directory string) (s GuardState, err error) {
	text, err := os.ReadFile(filepath.Join(directory, GuardStateFile))
	if err == nil {
		err = json.Unmarshal(text, &s)
	}
	return s, err
}

package initproto

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"clove.run/clove/internal/rlimits"
)

// Orders is everything that clove-init must know. Ids and paths are those inside the sandbox.
type Orders struct {
	Argv   Strings  `json:"argv"`
	Env    Strings  `json:"env"` // KEY=VALUE; Argv[0] is looked up in its PATH
	Dir    string   `json:"dir"` // absolute
	UID    uint32   `json:"uid"`
	GID    uint32   `json:"gid"`
	Groups []uint32 `json:"groups,omitempty"` // supplementary
	// Caps ("CAP_CHOWN") are the agent's five capability sets: bounding, permitted,
	// effective, inheritable and ambient. Empty: the agent has none and can get none.
	Caps []string `json:"caps,omitempty"`
	// Rlimits must include "nofile": Go's runtime raises that limit for clove-init itself,
	// so the launch's value is lost. Other limits that are absent stay as the launch set
	// them.
	Rlimits  []Rlimit  `json:"rlimits"`
	Terminal *Terminal `json:"terminal,omitempty"` // nil: the agent keeps 0, 1 and 2
	// WallClock is counted on CLOCK_BOOTTIME from Started. 0: no deadline.
	WallClock time.Duration `json:"wall_clock_ns,omitempty"`
	// StopGrace is the time between StopSignal and SIGKILL at the deadline.
	StopGrace time.Duration `json:"stop_grace_ns"`
	// StopSignal requests every process to end; 0: SIGTERM.
	StopSignal int `json:"stop_signal,omitempty"`
	// The filters are arrays of struct sock_filter. Those of the agent decide alike: Reporting
	// has a listener, and Filter is for a kernel that makes none. They are loaded just before
	// the command executes. Init is PID 1's own. Empty: there is none.
	Filter    []byte `json:"filter,omitempty"`
	Reporting []byte `json:"reporting,omitempty"`
	Init      []byte `json:"init,omitempty"`
	// Confined: Landlock rules travel with the orders, as the descriptor Ruleset. They are
	// entered before the filter is loaded. The sender keeps its copy, the receiver owns its own.
	Confined bool     `json:"confined,omitempty"`
	Ruleset  *os.File `json:"-"`
	// Home is a file that is written before the command executes; nil: none.
	Home *HomeFile `json:"home,omitempty"`
}

// HomeFile is a file in the agent's home. It is written with the agent's own rights, in
// directories that are made where they are missing, and through no link.
type HomeFile struct {
	Home string `json:"home"` // absolute; it exists
	Path string `json:"path"` // below Home
	Text string `json:"text"`
	Keep bool   `json:"keep,omitempty"` // a file that is there is an earlier start's, and stays
	// Replace removes a file that is there, as an earlier run has left in a kept home. With neither
	// it is an error.
	Replace bool `json:"replace,omitempty"`
}

// Terminal is the first size of the agent's pty; 0 by 0 is fine.
type Terminal struct {
	Rows    uint16 `json:"rows"`
	Columns uint16 `json:"columns"`
}

// Rlimit is one setrlimit(2); ^uint64(0) is infinity.
type Rlimit struct {
	Name string `json:"name"` // one of rlimits.Names
	Soft uint64 `json:"soft"`
	Hard uint64 `json:"hard"`
}

// maxID is the largest id of an agent (agent.MaxUser). The next one is clove-init's own,
// and (uint32)-1 means "unchanged" to setresuid(2) and its relatives.
const maxID = 65532

// Validate rejects orders that cannot be carried out as written.
func (o *Orders) Validate() error {
	checks := []func(*Orders) error{checkCommand, checkIDs, checkLimits, checkTimes, checkFilter, checkRuleset, checkHome}
	for _, check := range checks {
		if err := check(o); err != nil {
			return fmt.Errorf("cannot accept orders: %w", err)
		}
	}
	return nil
}

// checkRuleset rejects orders that lost their rules on the way: the agent would have none.
func checkRuleset(o *Orders) error {
	if o.Confined != (o.Ruleset != nil) {
		return fmt.Errorf("rules of files are expected: %t, and there: %t", o.Confined, o.Ruleset != nil)
	}
	return nil
}

// checkHome rejects a file outside of the home.
func checkHome(o *Orders) error {
	h := o.Home
	if h != nil && (!strings.HasPrefix(h.Home, "/") || h.Path == "." || !fs.ValidPath(h.Path) || strings.Contains(h.Home+h.Path, "\x00")) {
		return fmt.Errorf("%q is no file below %q", h.Path, h.Home)
	}
	return nil
}

// checkCommand rejects what execve(2) or chdir(2) could not take as it was meant.
func checkCommand(o *Orders) error {
	if len(o.Argv) == 0 || o.Argv[0] == "" {
		return errors.New("no command")
	}
	// The path is a JSON string, in which invalid UTF-8 would be replaced.
	if !strings.HasPrefix(o.Dir, "/") || !utf8.ValidString(o.Dir) || strings.Contains(o.Dir, "\x00") {
		return fmt.Errorf("%q is not an absolute UTF-8 path", o.Dir)
	}
	return nil
}

// checkIDs rejects clove-init's own id and those above it (maxID), and what is no
// capability.
func checkIDs(o *Orders) error {
	for _, id := range append([]uint32{o.UID, o.GID}, o.Groups...) {
		if id > maxID {
			return fmt.Errorf("id %d is not an agent's", id)
		}
	}
	for _, name := range o.Caps {
		if _, ok := CapabilityNumber(name); !ok {
			return fmt.Errorf("%q is not a capability", name)
		}
	}
	return nil
}

// checkLimits rejects limits that setrlimit(2) would refuse, and orders without nofile (see
// Rlimits).
func checkLimits(o *Orders) error {
	seen := map[string]bool{}
	for _, limit := range o.Rlimits {
		if _, ok := rlimits.Resource(limit.Name); !ok {
			return fmt.Errorf("%q is not a resource limit", limit.Name)
		}
		if seen[limit.Name] {
			return fmt.Errorf("resource limit %s is there twice", limit.Name)
		}
		seen[limit.Name] = true
		if limit.Soft > limit.Hard {
			return fmt.Errorf("resource limit %s: soft %d is above hard %d", limit.Name, limit.Soft, limit.Hard)
		}
	}
	if !seen["nofile"] {
		return errors.New("no resource limit nofile")
	}
	return nil
}

// Sizes of a filter, from linux/filter.h and linux/bpf_common.h.
const (
	instructionBytes = 8    // of struct sock_filter
	instructionsMost = 4096 // BPF_MAXINSNS
)

// checkFilter rejects what the kernel would not load, so that the failure comes before the
// agent's process has changed.
func checkFilter(o *Orders) error {
	for _, filter := range [][]byte{o.Filter, o.Reporting, o.Init} {
		if len(filter)%instructionBytes != 0 || len(filter) > instructionsMost*instructionBytes {
			return fmt.Errorf("%d bytes are not a filter", len(filter))
		}
	}
	if len(o.Reporting) > 0 && len(o.Filter) == 0 {
		return errors.New("a filter has to work without a listener, too")
	}
	return nil
}

// checkTimes accepts 0 for each: no deadline, no grace, SIGTERM.
func checkTimes(o *Orders) error {
	if o.WallClock < 0 || o.StopGrace < 0 {
		return errors.New("a duration is negative")
	}
	if o.StopSignal < 0 || o.StopSignal > 64 {
		return fmt.Errorf("%d is not a signal", o.StopSignal)
	}
	return nil
}

// Strings are arguments or environment: any bytes except NUL, which a JSON string cannot
// carry unchanged. On the wire they are base64 of NUL-terminated strings.
type Strings []string

// MarshalJSON rejects a string that execve(2) would cut.
func (s Strings) MarshalJSON() ([]byte, error) {
	var joined bytes.Buffer
	for _, item := range s {
		if strings.Contains(item, "\x00") {
			return nil, fmt.Errorf("%q contains NUL", item)
		}
		joined.WriteString(item)
		joined.WriteByte(0)
	}
	return json.Marshal(joined.Bytes())
}

// UnmarshalJSON reads what MarshalJSON wrote.
func (s *Strings) UnmarshalJSON(data []byte) error {
	var joined []byte
	if err := json.Unmarshal(data, &joined); err != nil {
		return err
	}
	*s = nil
	if len(joined) == 0 {
		return nil
	}
	if joined[len(joined)-1] != 0 {
		return errors.New("last string is not terminated")
	}
	*s = strings.Split(string(joined[:len(joined)-1]), "\x00")
	return nil
}

package daemon

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/netip"
	"os"
	"runtime"
	"slices"
	"strconv"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/audit"
	"clove.run/clove/internal/document"
	"clove.run/clove/models/config"
	"clove.run/clove/models/control"
	"clove.run/clove/policies/host"
	"clove.run/clove/secrets/sealed"
)

// DefaultConfigFile is read when no other is named; it need not exist.
const DefaultConfigFile = "/etc/clove/clove.yaml"

// Config is cloved's configuration file. A field that is absent has the value
// that is named beside it.
type Config struct {
	// Socket is where cloved listens: clove.sock in the run directory, /run/clove.
	// A change takes a restart.
	Socket string `json:"socket"`
	// Group is whose members may use cloved: clove. Empty, or one that does not
	// exist: only root. A change takes a restart.
	Group string `json:"group"`
	// MemoryShare is the part of the host's memory that agents may use together: 0.8. A
	// start waits while what they use, with a reserve for each, is beyond it, and the kernel
	// limits all of them to it. 0: no start waits.
	MemoryShare float64 `json:"memory_share"`
	// StartsAtOnce is how many agents may be starting at the same time; 0: twice the CPUs.
	StartsAtOnce int `json:"starts_at_once"`
	// LogCap bounds the log of each agent: 64M.
	LogCap string `json:"log_cap"`
	// AuditCap bounds the audit log: 4G. The oldest records beyond it are removed; empty: none are.
	AuditCap string `json:"audit_cap"`
	// AuditDays is how many days records of the audit log are kept: 0, as long as AuditCap lets them.
	AuditDays int `json:"audit_days"`
	// LostDays is how many days layers and logs without a record are kept: 0, until root
	// removes them with clove gc --lost.
	LostDays int `json:"lost_days"`
	// MetricsAddress is a loopback address and port that answers GET /metrics for
	// everybody on the host: none. A change takes a restart.
	MetricsAddress string `json:"metrics_address"`
	// MetricsSocket is a Unix socket that does, for root and the group, who may
	// ask for their agents' figures there as well: none. A change takes a restart.
	MetricsSocket string `json:"metrics_socket"`
	// LogLevel is debug, info, warn or error: info.
	LogLevel string `json:"log_level"`
	// Models is the file of model providers (docs/models.md): /etc/clove/models.yaml.
	Models string `json:"models"`
	// Secrets is the directory of the providers' keys: /etc/clove/secrets.
	Secrets string `json:"secrets"`
	// SecretKey is the file of the key with which secrets are encrypted (docs/secrets.md), where systemd has no credential
	// clove-secret-key: /etc/clove/secret.key. It is made with the first secret. A change takes a restart.
	SecretKey string `json:"secret_key"`
	// Policies is the directory of the host's policies (docs/policies.md): /etc/clove/policies.
	// Its document host bounds every run.
	Policies string `json:"policies"`
	// Approvers are users, by name in /etc/passwd or by number, who may see and answer the questions of all users'
	// runs (docs/approvals.md): none. Root, and the owner of a run, always may.
	Approvers Approvers `json:"approvers"`
	// Users is what people other than root may ask for.
	Users UserLimits `json:"users"`
}

// UserLimits bound one user's agents. 0 and empty mean no limit.
type UserLimits struct {
	// Runs is how many agents a user may have that have not ended: 50.
	Runs int `json:"runs"`
	// Kept is how many ended runs a user may keep, with their layers and logs: 200.
	Kept int `json:"kept"`
	// Memory is the most that one agent may be limited to, swap included: no limit but the host's.
	Memory string `json:"memory"`
	// Disk is the largest writable layer: 10G.
	Disk string `json:"disk"`
	// Allow is the most that the network rules of a user's agent may allow, as the
	// targets of --allow: no bound.
	Allow []string `json:"allow"`
}

// DefaultConfig is what holds without a file.
func DefaultConfig() Config {
	return Config{Group: "clove", MemoryShare: 0.8, LogCap: "64M", AuditCap: "4G", LogLevel: "info",
		Models: config.DefaultFile, Secrets: control.SecretsDir, SecretKey: sealed.DefaultFile, Policies: host.PoliciesDir(), Approvers: Approvers{}, Users: UserLimits{Runs: 50, Kept: 200, Disk: "10G", Allow: []string{}}}
}

// LoadConfig reads a file over the defaults. An unknown field is an error: an administrator
// would believe that it has an effect. Only the default file may be absent.
func LoadConfig(path string) (Config, error) {
	config := DefaultConfig()
	if path == "" {
		return config, nil
	}
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && path == DefaultConfigFile {
		return config, nil
	}
	if err == nil {
		err = document.Decode(text, &config)
	}
	if err == nil {
		err = config.check()
	}
	if err != nil {
		return config, &agent.Error{Kind: agent.KindInvalid, Step: "configuration", Message: "cannot use " + path, Err: err,
			Hint: "docs/clove.yaml shows every field"}
	}
	return config, nil
}

// check refuses what cloved could not do, with the field's name. It is called for each file
// that is read, so that the rest of cloved need not check a value again.
func (c Config) check() error {
	switch {
	case c.Socket != "" && c.Socket[0] != '/':
		return fmt.Errorf("socket: %q is not an absolute path", c.Socket)
	case c.Policies == "" || c.Policies[0] != '/':
		return fmt.Errorf("policies: %q is not an absolute path", c.Policies)
	case c.MetricsSocket != "" && c.MetricsSocket[0] != '/':
		return fmt.Errorf("metrics_socket: %q is not an absolute path", c.MetricsSocket)
	// Above 1, starts count on swap; the kernel's limit is less than the host's memory.
	case c.MemoryShare < 0 || c.MemoryShare > 10:
		return fmt.Errorf("memory_share: %v is not a share from 0 to 10", c.MemoryShare)
	case c.StartsAtOnce < 0:
		return fmt.Errorf("starts_at_once: %d is less than 0", c.StartsAtOnce)
	case c.AuditDays < 0 || c.AuditDays > maxAuditDays:
		return fmt.Errorf("audit_days: %d is not a number from 0 to %d", c.AuditDays, maxAuditDays)
	case c.LostDays < 0 || c.LostDays > maxAuditDays:
		return fmt.Errorf("lost_days: %d is not a number from 0 to %d", c.LostDays, maxAuditDays)
	case c.Users.Runs < 0:
		return fmt.Errorf("users.runs: %d is less than 0", c.Users.Runs)
	case c.Users.Kept < 0:
		return fmt.Errorf("users.kept: %d is less than 0", c.Users.Kept)
	}
	for _, size := range []struct {
		field, text string
		floor       int64
	}{{"log_cap", c.LogCap, 0}, {"audit_cap", c.AuditCap, 0}, {"users.memory", c.Users.Memory, agent.MemoryFloorBytes}, {"users.disk", c.Users.Disk, agent.DiskFloorBytes}} {
		n, err := parseSize(size.text)
		if err != nil {
			return fmt.Errorf("%s: %w", size.field, err)
		}
		if n > 0 && n < size.floor { // no run could be started
			return fmt.Errorf("%s: %s is less than any run takes, %d bytes", size.field, size.text, size.floor)
		}
	}
	if err := c.Users.checkAllow(); err != nil {
		return fmt.Errorf("users.allow: %w", err)
	}
	if c.LogCapBytes() < minLogCap {
		return fmt.Errorf("log_cap: %s is less than 64K", c.LogCap)
	}
	if kept := c.auditKept(); kept.Bytes > 0 && kept.Bytes < minAuditCap {
		return fmt.Errorf("audit_cap: %s is less than 64M", c.AuditCap)
	}
	if c.MetricsAddress != "" {
		if err := checkLoopback(c.MetricsAddress); err != nil {
			return err
		}
	}
	_, err := level(c.LogLevel)
	return err
}

// Approvers are numbers of users. A document names each by its name or number.
type Approvers []uint32

// UnmarshalJSON reads names and numbers. An error names the one that is no user.
func (a *Approvers) UnmarshalJSON(text []byte) error {
	var users []any
	if err := json.Unmarshal(text, &users); err != nil {
		return fmt.Errorf("write a list of users: %w", err)
	}
	*a = Approvers{}
	for _, user := range users {
		name := fmt.Sprint(user)
		if number, is := user.(float64); is {
			name = strconv.FormatFloat(number, 'f', -1, 64)
		}
		uid, _, found := host.User("/", name)
		if !found {
			n, err := strconv.ParseUint(name, 10, 32)
			if err != nil {
				return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("%.64q is no user of /etc/passwd", name), Hint: "write the number of a user"}
			}
			uid = uint32(n)
		}
		*a = append(*a, uid)
	}
	return nil
}

// approves reports whether a user may answer questions of all runs.
func (c Config) approves(uid uint32) bool { return slices.Contains(c.Approvers, uid) }

// minLogCap leaves space for a few of the longest lines.
const minLogCap = 64 << 10

// minAuditCap leaves space for a few segments, and maxAuditDays is the most that a time.Duration holds.
const (
	minAuditCap  = 64 << 20
	maxAuditDays = 36500
)

// auditKept is how much of the audit log is kept.
func (c Config) auditKept() audit.Keep {
	bytes, _ := parseSize(c.AuditCap) // it was checked
	return audit.Keep{Bytes: bytes, Age: time.Duration(c.AuditDays) * 24 * time.Hour}
}

// LogCapBytes is LogCap as a number.
func (c Config) LogCapBytes() int64 {
	n, _ := parseSize(c.LogCap) // it was checked
	return n
}

// startsAtOnce is how many agents may be starting at the same time.
func (c Config) startsAtOnce() int { return cmp.Or(c.StartsAtOnce, 2*runtime.NumCPU()) }

// memoryBytes is what agents may use together; 0: no limit, also where the kernel
// does not say how much memory there is.
func (c Config) memoryBytes() int64 {
	var info unix.Sysinfo_t
	if c.MemoryShare == 0 || unix.Sysinfo(&info) != nil {
		return 0
	}
	return int64(float64(info.Totalram) * float64(info.Unit) * c.MemoryShare)
}

// parseSize reads a number of bytes; none is 0.
func parseSize(text string) (int64, error) {
	if text == "" {
		return 0, nil
	}
	return agent.ParseSize(text)
}

// checkLoopback refuses an address that others than this host can reach.
func checkLoopback(address string) error {
	at, err := netip.ParseAddrPort(address)
	switch {
	case err != nil:
		return fmt.Errorf("metrics_address: %q is not an address and a port such as 127.0.0.1:9464", address)
	case !at.Addr().IsLoopback():
		return fmt.Errorf("metrics_address: %s is not a loopback address: put a proxy that authenticates its callers before it", at.Addr())
	}
	return nil
}

// level parses the log level of the configuration.
func level(text string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(text)); err != nil {
		return l, fmt.Errorf("log_level: %q is not debug, info, warn or error", text)
	}
	return l, nil
}

// Level is the configured level of cloved's own log.
func (c Config) Level() slog.Level {
	l, _ := level(c.LogLevel) // it was checked
	return l
}

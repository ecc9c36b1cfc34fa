package rootfs

import (
	"fmt"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"

	"clove.run/clove/internal/nsthread"
)

// Config is the input of NewPlan, which validates it.
type Config struct {
	ID                 string // names the layer's image; letters, digits, '_', '.', '-'
	HostID             uint32 // host id of id 0 inside; the 65536 ids from here on are the agent's
	AgentUID, AgentGID uint32 // the agent's ids inside, at most 65532
	Hostname           string // for /etc/hostname and /etc/hosts; empty: ID
	StateDir           string // holds layers/ and templates/
	RunDir             string // this run's own directory; the root is staged in RunDir/mnt
	DiskBytes          int64  // size of the writable layer, its own bookkeeping included
	MemoryBytes        int64  // the memory limit; a tmpfs without a size gets half of it
	Rootfs             string // host directory that replaces the host's base system; empty: the base system
	Workspace          string // host directory that appears, copy on write, at /workspace; empty: an empty one
	GitDir             string // the repository of Workspace, if nothing in it says so; see gitdir.Find
	NoRepository       bool   // the repository of Workspace is not shown
	Home               string // names a home that is kept: the same at the next run of User for HomeFolder; empty: a new one
	HomeFolder         string
	Keep               []string // folders inside that are kept with Home
	// User is the user whose rights open Workspace and Binds. In them the agent may do what
	// that user may; files of others belong to the user nobody. nil: root requested the run, and the
	// agent acts as the owner of each directory.
	User     *nsthread.Identity
	ReadOnly bool // only /workspace, /tmp, /var/tmp and /home/agent stay writable, and requested mounts
	// Writable are the only ones of these that stay writable; nil: all. Another place in it,
	// such as /dev/shm, is not made by this package and has no effect here.
	Writable []string
	// Execute are the only programs that may be executed, with all that is mapped into them: files
	// and directories inside, or patterns of them (path.Match). nil: there is no list.
	Execute  []string
	Command  Command  // what the list must have at least
	Prefixes []string // host directories that appear read-only at their own path
	Binds    []Bind
	Tmpfs    []Tmpfs
	Services string // host directory with the agent's own socket, shown read-only at ServicesDir; empty: none
	// Authority: Services has AuthorityFile, an authority that the agent's programs trust beside those of the root, wherever the root
	// keeps these in one file.
	Authority  bool
	ResolvConf string // text of /etc/resolv.conf; empty: there is no name server
	Hosts      string // text of /etc/hosts; empty: the sandbox itself and no other host
	MoreHosts  string // lines behind that text

	kept bool   // see Plan.OnKeptLayer
	seed string // see Plan.OnCopyOf
	shown
}

// Command is how the agent's program is looked up.
type Command struct {
	Name string // with a slash a path, else a name in a directory of Path; empty: any
	Dir  string // the working directory
	Path []string
}

// Bind shows a host path inside at Target, submounts included.
type Bind struct {
	Source   string
	Target   string
	ReadOnly bool
	// CopyOnWrite is for a read-only directory: the agent's changes go into the layer, and submounts
	// do not appear. Source must then have no link in it. Where Target could not be written either,
	// the directory is only shown.
	CopyOnWrite bool
	Secrets     bool // the directory may have credentials; else one that has some is refused
}

// Tmpfs is a private memory file system inside.
type Tmpfs struct {
	Target    string
	SizeBytes int64  // 0: half of Config.MemoryBytes
	Mode      uint32 // 0: 01777
	NoSwap    bool   // what is in it is in memory alone
}

// ServicesDir is where an agent finds its own socket.
const ServicesDir = "/run/clove"

const (
	workspaceDir = "/workspace"
	agentHome    = "/home/agent"

	// The same as agent.IDsPerAgent and agent.MaxUser.
	idsPerAgent = 65536
	maxAgentID  = 65532 // 65533 is clove-init's, 65534 is the user nobody's

	// MinDiskBytes has space for the skeleton of any host, see etcEntries and etcFileBytes.
	MinDiskBytes = 8 << 20
)

// The length is checked separately: the pattern {0,127} would compile to a program of 100
// KiB at each run.
var idPattern = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-zA-Z0-9][a-zA-Z0-9_.-]*$`) })

const maxIDLength = 128

// check rejects what can be rejected without reading the host.
func (c Config) check() error {
	switch {
	case len(c.ID) > maxIDLength || !idPattern().MatchString(c.ID):
		return fmt.Errorf("cannot plan a root: %q is not an id", c.ID)
	case c.HostID < idsPerAgent:
		return fmt.Errorf("cannot plan a root: host id %d belongs to the host", c.HostID)
	case c.HostID > 1<<32-1-idsPerAgent:
		return fmt.Errorf("cannot plan a root: no %d host ids from %d on", idsPerAgent, c.HostID)
	case c.AgentUID > maxAgentID || c.AgentGID > maxAgentID:
		return fmt.Errorf("cannot plan a root: user %d:%d is beyond %d", c.AgentUID, c.AgentGID, maxAgentID)
	case c.DiskBytes < MinDiskBytes:
		return fmt.Errorf("cannot plan a root: a disk of %d bytes is too small, the least is %d", c.DiskBytes, MinDiskBytes)
	case len(c.Writable) > 0 && !c.ReadOnly:
		return fmt.Errorf("cannot plan a root: only a read-only one has a list of writable places")
	case c.Execute != nil && !c.ReadOnly:
		return fmt.Errorf("cannot plan a root: only a read-only one has a list of programs")
	case c.Home != "" && !c.staysWritable(agentHome):
		return fmt.Errorf("cannot keep the home %s: %s is not among the places that stay writable", c.Home, agentHome)
	case !isCleanAbsolute(c.StateDir) || !isCleanAbsolute(c.RunDir):
		return fmt.Errorf("cannot plan a root: state %q and run directory %q must be clean absolute paths", c.StateDir, c.RunDir)
	}
	if err := c.checkKeep(); err != nil {
		return err
	}
	return c.checkTargets()
}

// checkKeep rejects a kept folder in, at or above another mount.
func (c Config) checkKeep() error {
	if len(c.Keep) > 0 && c.Home == "" {
		return fmt.Errorf("cannot keep %s: no home is kept", c.Keep[0])
	}
	taken := append([]string{workspaceDir, agentHome, ServicesDir, "/tmp", "/var/tmp", "/etc"}, c.Prefixes...)
	for _, b := range c.Binds {
		taken = append(taken, b.Target)
	}
	for _, t := range c.Tmpfs {
		taken = append(taken, t.Target)
	}
	for _, folder := range c.Keep {
		if err := checkTarget(folder); err != nil {
			return err
		}
		for _, place := range slices.Concat(taken, baseDirs, mergeDirs) {
			if within(folder, place) || within(place, folder) {
				return fmt.Errorf("cannot keep %s: something else is at %s", folder, place)
			}
		}
		taken = append(taken, folder)
	}
	return nil
}

// checkTargets also rejects two mounts at one target: the later would hide the earlier, so
// the user is mistaken about one.
func (c Config) checkTargets() error {
	var targets []string
	for _, b := range c.Binds {
		targets = append(targets, b.Target)
	}
	for _, t := range c.Tmpfs {
		if t.SizeBytes < 0 || t.Mode > 0o7777 {
			return fmt.Errorf("cannot mount tmpfs at %s: size %d or mode %#o is out of range", t.Target, t.SizeBytes, t.Mode)
		}
		if t.SizeBytes == 0 && c.MemoryBytes <= 0 {
			return fmt.Errorf("cannot mount tmpfs at %s: no size, and no memory limit to take it from", t.Target)
		}
		targets = append(targets, t.Target)
	}
	for i, target := range targets {
		if err := checkTarget(target); err != nil {
			return err
		}
		if slices.Contains(targets[:i], target) {
			return fmt.Errorf("cannot mount two things at %s", target)
		}
		if c.Home != "" && target == agentHome {
			return fmt.Errorf("cannot mount at %s: the kept home is there", target)
		}
		if c.Services != "" && within(target, ServicesDir) {
			return fmt.Errorf("cannot mount at %s: the agent's own socket is in %s", target, ServicesDir)
		}
	}
	return nil
}

// checkTarget rejects targets in the kernel's file systems, which libcontainer mounts
// later: they would hide what is mounted here.
func checkTarget(target string) error {
	if !isCleanAbsolute(target) {
		return fmt.Errorf("cannot mount at %q: not a clean absolute path", target)
	}
	if target == "/" {
		return fmt.Errorf("cannot mount at /: use a root file system directory instead")
	}
	for _, kernel := range []string{"/proc", "/sys", "/dev"} {
		if within(target, kernel) {
			return fmt.Errorf("cannot mount at %s: %s is the kernel's", target, kernel)
		}
	}
	return nil
}

// isCleanAbsolute lets later code compare paths as text. A NUL would end the path in the
// kernel.
func isCleanAbsolute(p string) bool {
	return path.IsAbs(p) && path.Clean(p) == p && !strings.ContainsRune(p, 0)
}

// within reports whether p is dir or below it. Both must be clean.
func within(p, dir string) bool {
	return p == dir || dir == "/" || strings.HasPrefix(p, dir+"/")
}

// staysWritable reports whether dir, one of clove's own writable directories, is left
// writable.
func (c Config) staysWritable(dir string) bool {
	return !c.ReadOnly || len(c.Writable) == 0 || slices.Contains(c.Writable, dir)
}

// writableAt reports whether the agent's layer takes what is written at a path.
func (c Config) writableAt(at string) bool {
	return !c.ReadOnly || slices.ContainsFunc([]string{"/tmp", "/var/tmp", agentHome, workspaceDir}, func(dir string) bool {
		return within(at, dir) && c.staysWritable(dir)
	})
}

func (c Config) hostname() string {
	if c.Hostname != "" {
		return c.Hostname
	}
	return c.ID
}

func (c Config) image() string { return filepath.Join(c.StateDir, "layers", c.ID+".img") }
func (c Config) stage() string { return filepath.Join(c.RunDir, "mnt") }

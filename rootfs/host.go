package rootfs

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/moby/sys/mountinfo"
	"golang.org/x/sys/unix"

	"clove.run/clove/internal/homedir"
	"clove.run/clove/internal/nsthread"
)

// hostInfo is what a plan needs to know of the host. It is read once, so that the planning
// itself has no side effects.
type hostInfo struct {
	Links      map[string]string // usr-merge: "/bin" to "usr/bin"
	Base       []string          // directories of the base system, and the mounts below them
	Etc        []entry           // what is copied from /etc, see readEtc
	Passwd     []byte
	Group      []byte
	Rootfs     source
	Workspace  source
	Binds      []source    // as Config.Binds
	Prefixes   []source    // as Config.Prefixes, without those that the base shows already
	Repository *repository // of a workspace whose .git is a file; nil: none that is shown
	Home       Home
	Veiled     bool // something is mounted over a part of /proc
	Execute    []executeOp

	layer *template // set by the first planning: it is the same for all host ids
}

// source is a host path that will be shown, with its symbolic links resolved.
type source struct {
	Path  string
	Dir   bool
	Owner uint32
	Group uint32
}

// baseDirs are the directories that make up the host's base system. The first
// level is a symbolic link on a usr-merged host.
var (
	baseDirs  = []string{"/usr", "/opt", "/etc/alternatives", "/etc/ssl/certs", "/var/lib/dpkg"}
	mergeDirs = []string{"/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"}
)

// readHostInfo reads the sources first, because only they can be wrong by the user's fault.
// With a root of the caller's own, nothing of the base system is needed.
func readHostInfo(cfg Config) (hostInfo, error) {
	var f hostInfo
	if err := f.readSources(cfg); err != nil {
		return hostInfo{}, err
	}
	mounts, err := mountinfo.GetMounts(nil)
	if err != nil {
		return hostInfo{}, fmt.Errorf("cannot read the host's mounts: %w", err)
	}
	f.Veiled = veiled(mounts)
	if cfg.Rootfs != "" {
		return f, nil
	}
	f.readBase(mounts)
	// The base shows these already, copy on write.
	f.Prefixes = slices.DeleteFunc(f.Prefixes, func(p source) bool { return inBase(p.Path) })
	if f.Passwd, err = os.ReadFile("/etc/passwd"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return hostInfo{}, fmt.Errorf("cannot read the host's users: %w", err)
	}
	if f.Group, err = os.ReadFile("/etc/group"); err != nil && !errors.Is(err, os.ErrNotExist) {
		return hostInfo{}, fmt.Errorf("cannot read the host's groups: %w", err)
	}
	f.Etc = readEtc("/etc")
	return f, nil
}

// readBase finds the base directories, and the file systems mounted below them: overlayfs
// does not show mounts inside its lower layer.
func (f *hostInfo) readBase(mounts []*mountinfo.Info) {
	f.Links = make(map[string]string)
	dirs := slices.Clone(baseDirs)
	for _, dir := range mergeDirs {
		// A link on a host with merged /usr, recreated in the skeleton. Elsewhere it is a
		// directory of the base.
		if link, err := os.Readlink(dir); err == nil {
			f.Links[dir] = link
		} else {
			dirs = append(dirs, dir)
		}
	}
	for _, dir := range dirs {
		if info, err := os.Lstat(dir); err == nil && info.IsDir() {
			f.Base = append(f.Base, dir)
		}
	}
	tops := slices.Clone(f.Base)
	for _, m := range mounts {
		if !slices.ContainsFunc(tops, func(dir string) bool { return m.Mountpoint != dir && within(m.Mountpoint, dir) }) {
			continue
		}
		// A mount on a file is left out, because an overlay needs a directory.
		info, err := os.Stat(m.Mountpoint)
		if err == nil && info.IsDir() && !pseudo[m.FSType] && !slices.Contains(f.Base, m.Mountpoint) {
			f.Base = append(f.Base, m.Mountpoint)
		}
	}
	slices.Sort(f.Base) // parents before children
}

// inBase reports whether the base shows an interpreter's prefix already.
func inBase(prefix string) bool { return within(prefix, "/usr") || within(prefix, "/opt") }

// veiled reports whether a part of /proc is covered, as engines do in a container that is
// not privileged. A mount on /proc/sys/fs/binfmt_misc covers nothing, because that
// directory is always empty.
func veiled(mounts []*mountinfo.Info) bool {
	return slices.ContainsFunc(mounts, func(m *mountinfo.Info) bool {
		return strings.HasPrefix(m.Mountpoint, "/proc/") && !within(m.Mountpoint, "/proc/sys/fs/binfmt_misc")
	})
}

// pseudo are the kernel's own file systems. One that is mounted below /usr belongs to
// another sandbox or chroot, not to the base system.
var pseudo = map[string]bool{
	"proc": true, "sysfs": true, "devtmpfs": true, "devpts": true, "mqueue": true, "cgroup": true, "cgroup2": true,
	"securityfs": true, "debugfs": true, "tracefs": true, "bpf": true, "pstore": true, "autofs": true, "binfmt_misc": true,
}

// readSources resolves every host path of cfg. The workspace and the binds of a user are
// resolved with that user's rights, so that an error does not tell the user what exists in
// other users' directories.
func (f *hostInfo) readSources(cfg Config) (err error) {
	if cfg.Rootfs != "" {
		if f.Rootfs, err = readSource("root file system", cfg.Rootfs, cfg, true); err != nil {
			return err
		}
		if err = checkRootfs(f.Rootfs.Path); err != nil {
			return err
		}
	}
	if cfg.Workspace != "" {
		err := rightsOf(cfg.User, nsthread.StartAs, func() (err error) {
			if f.Workspace, err = readSource("workspace", cfg.Workspace, cfg, true); err == nil {
				f.Repository, err = f.readRepository(cfg)
			}
			return err
		})
		if err != nil {
			return err
		}
		if slices.ContainsFunc(systemDirs, func(dir string) bool { return f.Workspace.Path == dir }) {
			return fmt.Errorf("cannot use %s as the workspace: it is a directory of the system", f.Workspace.Path)
		}
	}
	for _, prefix := range cfg.Prefixes {
		s, err := readSource("interpreter prefix", prefix, cfg, true)
		if err != nil {
			return err
		}
		f.Prefixes = append(f.Prefixes, s)
	}
	for _, bind := range cfg.Binds {
		err := rightsOf(cfg.User, nsthread.StartAs, func() error {
			s, err := readSource("bind source", bind.Source, cfg, bind.CopyOnWrite)
			f.Binds = append(f.Binds, s)
			if err == nil && bind.CopyOnWrite {
				err = bind.check(s)
			}
			return err
		})
		if err != nil {
			return err
		}
	}
	return f.readHome(cfg)
}

// check refuses a source whose path leads elsewhere now: its owner could have put a link in its
// place, which root's rights would follow. It also refuses credentials.
func (b Bind) check(s source) error {
	if s.Path != b.Source {
		return fmt.Errorf("cannot use bind source %s: a link on the way leads to %s", b.Source, s.Path)
	}
	if b.Secrets {
		return nil
	}
	name, _ := strings.CutPrefix(strings.TrimPrefix(b.Target, "/root/"), agentHome+"/")
	if err := homedir.Check(s.Path, name); err != nil {
		return fmt.Errorf("cannot show %s without leave for its secrets: %w", s.Path, err)
	}
	return nil
}

// rightsOf runs look with a user's rights, on a thread that start makes; nil means the
// process's own rights.
func rightsOf(user *nsthread.Identity, start func(nsthread.Identity) (*nsthread.Thread, error), look func() error) error {
	if user == nil {
		return look()
	}
	thread, err := start(*user)
	if err != nil {
		return err
	}
	defer thread.Close()
	return thread.Do(look)
}

// checkRootfs reports early what the mounting would reject: the kernel's file systems and
// the generated files of /etc need directories. The mounting does not rely on this check.
func checkRootfs(root string) error {
	for _, dir := range rootfsDirs {
		info, err := os.Lstat(filepath.Join(root, dir))
		if err == nil && !info.IsDir() {
			return fmt.Errorf("cannot use root file system %s: its %s is a %s, not a directory", root, dir, describe(info.Mode()))
		}
	}
	return nil
}

func describe(mode os.FileMode) string {
	if mode&os.ModeSymlink != 0 {
		return "symbolic link"
	}
	return "file"
}

// systemDirs are never a workspace: a script in one of them is no reason to show the whole
// directory to the agent.
var systemDirs = []string{"/bin", "/boot", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt", "/opt",
	"/root", "/run", "/sbin", "/srv", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin", "/usr/sbin",
	"/usr/share", "/var", "/var/lib", "/var/tmp"}

// readSource resolves path and refuses what may never be shown: the kernel's file systems,
// the whole host, and clove's own state, which has other agents' layers.
func readSource(what, path string, cfg Config, wantDir bool) (source, error) {
	if !filepath.IsAbs(path) {
		return source{}, fmt.Errorf("cannot use %s %q: not an absolute path", what, path)
	}
	real, err := filepath.EvalSymlinks(path)
	if err != nil {
		return source{}, fmt.Errorf("cannot use %s: %w", what, err)
	}
	var stat unix.Stat_t
	if err := unix.Lstat(real, &stat); err != nil {
		return source{}, fmt.Errorf("cannot use %s %s: %w", what, real, err)
	}
	s := source{Path: real, Dir: stat.Mode&unix.S_IFMT == unix.S_IFDIR, Owner: stat.Uid, Group: stat.Gid}
	if wantDir && !s.Dir {
		return source{}, fmt.Errorf("cannot use %s %s: not a directory", what, real)
	}
	if real == "/" {
		return source{}, fmt.Errorf("cannot use %s %s: it is the whole host", what, real)
	}
	for _, kernel := range []string{"/proc", "/sys", "/dev"} {
		if within(real, kernel) {
			return source{}, fmt.Errorf("cannot use %s %s: %s is the kernel's", what, real, kernel)
		}
	}
	for _, own := range []string{cfg.StateDir, cfg.RunDir} {
		// The source is resolved, so clove's directories must be for the comparison.
		if resolved, err := filepath.EvalSymlinks(own); err == nil {
			own = resolved
		}
		// Either way: below it are other runs' layers, and a directory above it would show
		// them.
		if within(real, own) || within(own, real) {
			return source{}, fmt.Errorf("cannot use %s %s: clove's own directory %s is in its way", what, real, own)
		}
	}
	if strings.ContainsRune(real, '\n') {
		return source{}, fmt.Errorf("cannot use %s %q: a line break in its name", what, real)
	}
	return s, nil
}

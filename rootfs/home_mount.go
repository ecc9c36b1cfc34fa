package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/nsthread"
)

const (
	homeInImage = "home" // the directory of the image that is shown, beside lost+found
	homeOwner   = 1000   // of the agent's files in it, user and group
	homeCopy    = "copy-home"
)

// ErrHomeCopy is a home in use that could not be copied.
var ErrHomeCopy = errors.New("another run has the kept home, and its files cannot be copied into this run's disk")

// ErrHomeFull is a home without space for one more folder.
var ErrHomeFull = errors.New("the kept home is full")

// ErrHomeDamaged is a home that did not survive a crash of the host.
var ErrHomeDamaged = errors.New("the kept home is damaged")

// readHome finds whose home it is. The folder is opened with the user's rights, as what is shown is.
func (f *hostInfo) readHome(cfg Config) error {
	if cfg.Home == "" {
		return nil
	}
	f.Home = Home{HomeKey: HomeKey{Name: cfg.Home}, Folder: cfg.HomeFolder, Bytes: cfg.DiskBytes}
	if cfg.User != nil {
		f.Home.UID = cfg.User.UID
	}
	return rightsOf(cfg.User, nsthread.StartAs, func() error {
		var stat unix.Statx_t
		err := unix.Statx(unix.AT_FDCWD, cfg.HomeFolder, 0, unix.STATX_INO|unix.STATX_BTIME|unix.STATX_TYPE, &stat)
		if err != nil || stat.Mode&unix.S_IFMT != unix.S_IFDIR {
			return fmt.Errorf("cannot use the folder of the kept home, %s: %w", cfg.HomeFolder, errors.Join(err, unix.ENOTDIR))
		}
		f.Home.Device, f.Home.Inode = unix.Mkdev(stat.Dev_major, stat.Dev_minor), stat.Ino
		if stat.Mask&unix.STATX_BTIME != 0 {
			f.Home.Born = stat.Btime.Sec*1e9 + int64(stat.Btime.Nsec)
		}
		return nil
	})
}

// homeMap shows the files of homeOwner as the agent's. It also maps the host's root, to an id beyond
// those of any file: as root the directories are made on which something is mounted in the home, and
// they are given away at once.
func (c Config) homeMap() idMap {
	uid, gid := agentIDs(c.AgentUID, c.AgentGID)
	m := ownerMap(c.HostID, uid, gid, homeOwner, homeOwner)
	m.UID = append(m.UID, extent{idsPerAgent, 0, 1})
	m.GID = append(m.GID, extent{idsPerAgent, 0, 1})
	return m
}

// homeOp brings the kept home onto the stage, with the folders that are kept with it. Map shows the
// files of the user homeOwner as the agent's, in whichever range of ids.
type homeOp struct {
	Home Home
	Keep []string
	Map  idMap
}

// shownHome is a home on the stage.
type shownHome struct {
	dir string // has the directories of the image
	ids idMap  // of mounts of them
}

func (s homeOp) idMap() idMap { return s.Map }

func (s homeOp) String() string {
	return fmt.Sprintf("home %s of user %d in %s, %s", s.Home.Name, s.Home.UID, s.Home.Folder, s.Map)
}

// run also removes the copy that an earlier start of this run had. The places of the folders come
// first: where one cannot be shown, no home is made.
func (s homeOp) run(b *builder) error {
	for _, folder := range s.Keep {
		target, err := b.makeKeptTarget(folder)
		if err != nil {
			return err
		}
		target.Close()
	}
	copied := b.staged(b.writable, homeCopy)
	if err := os.RemoveAll(copied); err != nil {
		return err
	}
	image, free, err := s.Home.open(b.cfg.StateDir)
	if err != nil {
		return err
	}
	defer image.Close() // the loop device keeps it open
	if err := os.Mkdir(b.staged("home"), 0o700); err != nil {
		return err
	}
	if free {
		b.home = shownHome{b.staged("home"), s.Map}
		err = s.mount(b, image)
	} else {
		b.home, b.tree.HomeCopied = shownHome{copied, idMap{}}, true
		err = s.copy(b, image, copied)
	}
	if err != nil {
		return fmt.Errorf("kept home %s: %w", s.Home.Name, err)
	}
	return nil
}

// keptDirOp shows a directory of the kept home, or of the copy of it, inside.
type keptDirOp struct{ Target, Dir, Home string }

func (s keptDirOp) String() string {
	if s.Target == agentHome {
		return "the kept home " + s.Home
	}
	return s.Target + ", which is kept with the home " + s.Home
}

func (s keptDirOp) run(b *builder) error {
	target, err := b.makeKeptTarget(s.Target)
	if err != nil {
		return err
	}
	defer target.Close()
	clone, err := b.clone(filepath.Join(b.home.dir, s.Dir), b.home.ids, cloneFlags{Dir: true})
	if err != nil {
		return fmt.Errorf("kept home %s: %w", s.Home, err)
	}
	defer clone.Close()
	return attach(clone, fdPath(target))
}

// makeKeptTarget makes the place of a kept directory. A link on the way to a folder, which an earlier
// start of this run or the owner of Config.Rootfs may have made, would show it elsewhere.
func (b *builder) makeKeptTarget(target string) (*os.File, error) {
	return b.makeDir(target, dirAttr{Mode: 0o755, Direct: target != agentHome})
}

// folderInImage is the directory of the image that has a kept folder.
func folderInImage(folder string) string {
	hash := sha256.Sum256([]byte(folder))
	return "folder-" + hex.EncodeToString(hash[:12])
}

// mount mounts the image that is locked.
func (s homeOp) mount(b *builder, image *os.File) error {
	if err := mend(image); err != nil {
		return fmt.Errorf("%w: %w", ErrHomeDamaged, err)
	}
	device, err := attachLoop(image, false, b.staged(""))
	if err != nil {
		return err
	}
	defer device.Close()
	if err := holdOff(device); err != nil {
		return err
	}
	if err := mountExt4(device, b.staged("home"), false); err != nil {
		return err
	}
	if len(s.Keep) == 0 {
		return nil
	}
	if err := s.Home.keep(b.cfg.StateDir, s.Keep); err != nil {
		return err
	}
	for _, folder := range s.Keep {
		err := makeKept(b.staged("home", folderInImage(folder)), homeOwner, homeOwner)
		if errors.Is(err, unix.ENOSPC) {
			err = fmt.Errorf("%w: %w", ErrHomeFull, err)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// makeKept makes the directory of a kept folder where it is missing. The directory above is not shown
// to an agent. The owner is set also where it is not: the last start may have been killed in between.
func makeKept(dir string, uid, gid int) error {
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	return os.Lchown(dir, uid, gid)
}

// liveFlags are of the mount through which a home is copied while its agent may replace a directory
// by a link: cp has root's rights.
var liveFlags = cloneFlags{ReadOnly: true, Dir: true, NoLinks: true}

// copy copies the files of another life's home into this run's layer. The image is not attached
// a second time: a mount of the same device shows the same file system. The other agent may
// change it meanwhile, so the copy reads it through a read-only mount in which no link is followed.
func (s homeOp) copy(b *builder, image *os.File, to string) error {
	device, err := loopOf(image)
	if err != nil {
		return err
	}
	defer device.Close()
	if err := mountExt4(device, b.staged("home"), false); err != nil {
		return err
	}
	defer unix.Unmount(b.staged("home"), unix.MNT_DETACH)
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	if err := s.copyDir(b, homeInImage, to); err != nil {
		return err
	}
	for _, folder := range s.Keep {
		dir := folderInImage(folder)
		err := s.copyDir(b, dir, to)
		if errors.Is(err, os.ErrNotExist) { // the other life has no such folder
			uid, gid := agentIDs(b.cfg.AgentUID, b.cfg.AgentGID)
			err = makeKept(filepath.Join(to, dir), int(b.cfg.HostID+uid), int(b.cfg.HostID+gid))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// copyDir copies a directory of the image that is on the stage.
func (s homeOp) copyDir(b *builder, dir, to string) error {
	clone, err := b.clone(b.staged("home", dir), s.Map, liveFlags)
	if err != nil {
		return err
	}
	defer clone.Close()
	seen := b.staged("home-seen")
	if err := os.Mkdir(seen, 0o700); err != nil && !errors.Is(err, os.ErrExist) {
		return err
	}
	if err := attach(clone, seen); err != nil {
		return err
	}
	defer unix.Unmount(seen, unix.MNT_DETACH)
	return copyLive(seen, filepath.Join(to, dir))
}

// copyLive copies a tree that changes meanwhile: a file that vanishes is left out.
func copyLive(from, to string) error {
	ctx, cancel := context.WithTimeout(context.Background(), copyTime)
	defer cancel()
	source, err := os.Open(from)
	if err != nil {
		return err
	}
	defer source.Close()
	if err := os.Mkdir(to, 0o700); err != nil {
		return err
	}
	made, err := os.Open(to)
	if err != nil {
		return err
	}
	defer made.Close()
	cmd := exec.CommandContext(ctx, "cp", "-a", "-T", "--one-file-system", "--", "/proc/self/fd/3/.", "/proc/self/fd/4/.")
	cmd.Env = append(os.Environ(), "LC_ALL=C")
	cmd.ExtraFiles = []*os.File{source, made}
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); errors.As(err, &exit) && exit.ExitCode() == 1 && onlyVanished(string(out)) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("%w: %w: %s", ErrHomeCopy, err, firstLine(string(out)))
	}
	return nil
}

// onlyVanished reports whether each line of cp's is about a file that was removed or replaced
// while it was copied.
func onlyVanished(out string) bool {
	for line := range strings.Lines(out) {
		line = strings.TrimSuffix(line, "\n")
		if !strings.HasSuffix(line, ": No such file or directory") && !strings.HasSuffix(line, "as it was replaced while being copied") {
			return false
		}
	}
	return out != ""
}

// loopOf opens the loop device that has image. As long as it is open, it keeps the image.
func loopOf(image *os.File) (*os.File, error) {
	var wanted unix.Stat_t
	if err := unix.Fstat(int(image.Fd()), &wanted); err != nil {
		return nil, err
	}
	bound, _ := filepath.Glob("/sys/block/loop*/loop") // fails on a bad pattern only
	for _, path := range bound {
		device, err := os.OpenFile("/dev/"+filepath.Base(filepath.Dir(path)), os.O_RDONLY|unix.O_CLOEXEC, 0)
		if err != nil {
			continue // detached meanwhile
		}
		info, err := unix.IoctlLoopGetStatus64(int(device.Fd()))
		if err == nil && info.Device == wanted.Dev && info.Inode == wanted.Ino {
			return device, nil
		}
		device.Close()
	}
	return nil, fmt.Errorf("%w: its loop device is not found", ErrHomeBusy)
}

package rootfs

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/atomicfile"
	"clove.run/clove/internal/descriptor"
)

// A kept home is an image of its own below StateDir/homes, beside the layers of runs, which it
// outlives. Its name is derived from HomeKey, and HOME.json has what `clove home ls` shows.

// HomeKey is whose home it is. Two runs have one home if all of it is equal.
type HomeKey struct {
	UID    uint32 `json:"uid"`
	Name   string `json:"name"`
	Device uint64 `json:"device"` // of the folder
	Inode  uint64 `json:"inode"`
	// Born is when the folder was made: another folder may get the inode of a removed one. 0 where
	// the file system does not say.
	Born int64 `json:"born,omitempty"`
}

// ID names the home's files.
func (k HomeKey) ID() string {
	hash := sha256.Sum256(fmt.Appendf(nil, "%d %q %d %d %d", k.UID, k.Name, k.Device, k.Inode, k.Born))
	return hex.EncodeToString(hash[:12])
}

// Home is a kept home as it is listed. Nothing in it is read for that.
type Home struct {
	HomeKey
	Folder  string    `json:"folder"` // its path when the home was made
	Bytes   int64     `json:"bytes"`  // its size, which bounds it
	Created time.Time `json:"created"`
	Keep    []string  `json:"keep,omitempty"` // the folders inside that are kept with it, sorted

	Held    int64     `json:"-"` // bytes of the disk
	Changed time.Time `json:"-"`
	InUse   bool      `json:"-"`
}

// homesPerUser bounds the kept homes of one user, as the size of each is bounded.
const homesPerUser = 64

// foldersPerHome bounds the folders that are kept with a home: each has an entry in the image beside
// what the agent may fill. The same as agent.KeepMost.
const foldersPerHome = 16

// ErrHomes are too many homes of one user.
var ErrHomes = fmt.Errorf("the user has %d kept homes already", homesPerUser)

// ErrFolders are too many folders that are kept with one home.
var ErrFolders = fmt.Errorf("%d folders are kept with the home already", foldersPerHome)

// ErrHomeBusy is a home that a run has.
var ErrHomeBusy = errors.New("a run has the home")

func homesDir(stateDir string) string { return filepath.Join(stateDir, "homes") }

func homeImage(stateDir, id string) string { return filepath.Join(homesDir(stateDir), id+".img") }

// Homes lists the kept homes below stateDir.
func Homes(stateDir string) ([]Home, error) {
	paths, _ := filepath.Glob(filepath.Join(homesDir(stateDir), "*.img")) // fails on a bad pattern only
	var homes []Home
	for _, path := range paths {
		home, err := readHome(path)
		if errors.Is(err, fs.ErrNotExist) {
			continue // removed meanwhile
		}
		if err != nil {
			return nil, fmt.Errorf("cannot list kept homes: %w", err)
		}
		homes = append(homes, home)
	}
	return homes, nil
}

func readHome(path string) (home Home, err error) {
	text, err := os.ReadFile(path[:len(path)-len(".img")] + ".json")
	if err != nil {
		return home, err
	}
	if err := json.Unmarshal(text, &home); err != nil {
		return home, fmt.Errorf("%s: %w", path, err)
	}
	image, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW, 0)
	if err != nil {
		return home, err
	}
	defer image.Close()
	info, err := image.Stat()
	if err != nil {
		return home, err
	}
	home.Changed = info.ModTime()
	if stat, known := info.Sys().(*syscall.Stat_t); known {
		home.Held = stat.Blocks * 512
	}
	err = unix.Flock(int(image.Fd()), unix.LOCK_SH|unix.LOCK_NB)
	home.InUse = errors.Is(err, unix.EWOULDBLOCK)
	return home, nil
}

// RemoveHome removes a kept home that no run has. Its files are not looked at.
func RemoveHome(stateDir, id string) error {
	return descriptor.Exclusively(homesDir(stateDir), func() error {
		path := homeImage(stateDir, id)
		image, err := os.OpenFile(path, os.O_RDWR|unix.O_NOFOLLOW, 0)
		if err != nil {
			return err
		}
		defer image.Close()
		if err := unix.Flock(int(image.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
			return ErrHomeBusy
		}
		return errors.Join(os.Remove(path), os.Remove(path[:len(path)-len(".img")]+".json"))
	})
}

// homePatience bounds the wait for the end of the life before: the kernel releases the mounts of
// an ended run a moment after its processes.
const homePatience = 3 * time.Second

// open opens the home's image, locked, and makes it at its first use. While another life has it,
// free is false and the image is not locked. The loop device keeps the locked file open, so the
// lock lasts until the last mount is gone.
func (h Home) open(stateDir string) (image *os.File, free bool, err error) {
	for {
		err = withHomes(stateDir, func() (err error) {
			image, err = os.OpenFile(homeImage(stateDir, h.ID()), os.O_RDWR|unix.O_NOFOLLOW, 0)
			if errors.Is(err, fs.ErrNotExist) {
				image, err = h.make(stateDir)
			}
			return err
		})
		if err != nil {
			return nil, false, fmt.Errorf("cannot open the kept home: %w", err)
		}
		ctx, cancel := context.WithTimeout(context.Background(), homePatience)
		err = descriptor.LockWithin(ctx, image, unix.LOCK_EX)
		late := ctx.Err() != nil
		cancel()
		var stat unix.Stat_t
		switch {
		case err != nil && late:
			return image, false, nil
		case err == nil:
			err = unix.Fstat(int(image.Fd()), &stat)
		}
		if err != nil {
			image.Close()
			return nil, false, fmt.Errorf("cannot lock the kept home: %w", err)
		}
		if stat.Nlink > 0 {
			return image, true, nil
		}
		image.Close() // it was removed between the open and the lock
	}
}

// withHomes runs f while no other process makes or removes a home.
func withHomes(stateDir string, f func() error) error {
	if err := os.MkdirAll(homesDir(stateDir), 0o700); err != nil {
		return err
	}
	return descriptor.Exclusively(homesDir(stateDir), f)
}

// make makes an empty home. The agent's files are in a directory of the image, which belongs to
// the user 1000, whoever the agent is: the mount shows them as the agent's.
func (h Home) make(stateDir string) (image *os.File, err error) {
	homes, err := Homes(stateDir)
	if err != nil {
		return nil, err
	}
	of := 0
	for _, other := range homes {
		if other.UID == h.UID {
			of++
		}
	}
	if of >= homesPerUser {
		return nil, ErrHomes
	}
	// Homes are made under a lock, so another one of these was left by a clove that was killed.
	abandoned, _ := filepath.Glob(filepath.Join(homesDir(stateDir), scratchPattern)) // fails on a bad pattern only
	for _, path := range abandoned {
		_ = os.RemoveAll(path) // the next maker tries again
	}
	scratch, err := os.MkdirTemp(homesDir(stateDir), scratchPattern)
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(scratch)
	content, path := filepath.Join(scratch, "content"), filepath.Join(scratch, "image")
	home := filepath.Join(content, homeInImage)
	if err := errors.Join(os.Mkdir(content, 0o700), os.Mkdir(home, 0o755), os.Lchown(home, homeOwner, homeOwner)); err != nil {
		return nil, err
	}
	if image, err = newImage(path, h.Bytes); err != nil {
		return nil, err
	}
	h.Created = time.Now()
	if err == nil {
		err = makeFileSystem(path, h.Bytes, content)
	}
	if err == nil {
		err = image.Sync() // before the name, which says that it is whole
	}
	final := homeImage(stateDir, h.ID())
	if err == nil {
		err = h.describe(final)
	}
	if err == nil {
		err = os.Rename(path, final)
	}
	if err != nil {
		image.Close()
		return nil, err
	}
	return image, nil
}

// describe writes what a home is listed with, beside its image.
func (h Home) describe(image string) error {
	text, err := json.Marshal(h)
	if err != nil {
		return err
	}
	return atomicfile.Write(image[:len(image)-len(".img")]+".json", 0o600, text)
}

// keep lists more folders with a home, whose image the caller has locked. It does so before they are
// made: of a start that is killed in between nothing is left that no list shows.
func (h Home) keep(stateDir string, folders []string) error {
	return withHomes(stateDir, func() error {
		path := homeImage(stateDir, h.ID())
		home, err := readHome(path)
		if err != nil {
			return err
		}
		known := len(home.Keep)
		for _, folder := range folders {
			if !slices.Contains(home.Keep, folder) {
				home.Keep = append(home.Keep, folder)
			}
		}
		if len(home.Keep) > foldersPerHome {
			return ErrFolders
		}
		if len(home.Keep) == known {
			return nil
		}
		slices.Sort(home.Keep)
		return home.describe(path)
	})
}

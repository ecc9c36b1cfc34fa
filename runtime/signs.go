package runtime

import (
	"errors"
	"hash/fnv"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/descriptor"
)

// signs is the file in the state directory on which every supervisor holds a lock: a
// byte for each run, and one for cloved. A run directory has a lock too,
// but it may be removed, or be another one in another mount namespace; the store
// lies where these locks are. They belong to the open file (F_OFD_SETLK, see
// fcntl(2)): the kernel frees them however their process ends.
type signs string

func (p Paths) signs() signs { return signs(p.State + "/alive.lock") }

// serverSign is cloved's byte, behind those of all runs.
const serverSign = 1 << 62

// signOf is the byte of a run. Two runs of 64 random bits do not meet.
func signOf(id agent.ID) int64 {
	hash := fnv.New64a()
	hash.Write([]byte(id))
	return int64(hash.Sum64() % serverSign)
}

// give holds the byte for as long as the file that it returns is open. The
// error is errAlive if another process holds it.
func (s signs) give(byte int64) (*os.File, error) {
	// One open file for each sign: a lock of this kind belongs to it, not to the process.
	file, err := os.OpenFile(string(s), os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: byte, Len: 1})
	if err == nil {
		return file, nil
	}
	file.Close()
	if errors.Is(err, unix.EAGAIN) {
		err = errAlive
	}
	return nil, err
}

// takeBack does not only close: a child of this process has a copy of the
// descriptor between fork and exec.
func takeBack(sign *os.File) {
	if sign == nil {
		return
	}
	_ = unix.FcntlFlock(sign.Fd(), unix.F_OFD_SETLK, &unix.Flock_t{Type: unix.F_UNLCK, Whence: io.SeekStart})
	sign.Close()
}

// held reports whether a process holds the run's byte; in doubt it does.
func (s signs) held(id agent.ID) bool {
	held, err := s.inRange(signOf(id), 1)
	return held || err != nil
}

// any reports whether a process holds any byte.
func (s signs) any() (bool, error) { return s.inRange(0, 0) }

// inRange looks at length bytes, 0 is all that follow.
func (s signs) inRange(first, length int64) (bool, error) {
	file, err := os.Open(string(s))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer file.Close()
	// GETLK only asks, so a file that is open for reading will do. It names one lock that
	// would conflict, or sets F_UNLCK.
	look := unix.Flock_t{Type: unix.F_WRLCK, Whence: io.SeekStart, Start: first, Len: length}
	err = unix.FcntlFlock(file.Fd(), unix.F_OFD_GETLK, &look)
	return look.Type != unix.F_UNLCK, err
}

// errAlive says that a run's supervisor holds its lock.
var errAlive = errors.New("the supervisor is alive")

// lives reports whether a process holds the run directory; fs.ErrNotExist if there is
// none. It releases the lock before others may look, who would take it for a
// supervisor's.
func lives(path string) (alive bool, err error) {
	err = descriptor.Exclusively(filepath.Dir(path), func() error {
		if _, err := os.Stat(path); err != nil {
			return err
		}
		lock, err := lockIn(path)
		if err != nil {
			return err
		}
		return unlock(lock)
	})
	if errors.Is(err, errAlive) {
		return true, nil
	}
	return false, err
}

// lockFile, in a run directory, is locked by the supervisor for as long as it lives.
const lockFile = "lock"

// lockIn takes the lock in dir without waiting, or returns errAlive.
func lockIn(dir string) (*os.File, error) {
	lock, err := os.OpenFile(filepath.Join(dir, lockFile), os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, err
	}
	if err := unix.Flock(int(lock.Fd()), unix.LOCK_EX|unix.LOCK_NB); err != nil {
		lock.Close()
		if errors.Is(err, unix.EWOULDBLOCK) {
			return nil, errAlive
		}
		return nil, err
	}
	return lock, nil
}

// unlock does not only close: a child of this process has a copy of the
// descriptor between fork and exec.
func unlock(lock *os.File) error {
	return errors.Join(unix.Flock(int(lock.Fd()), unix.LOCK_UN), lock.Close())
}

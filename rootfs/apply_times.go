package rootfs

import (
	"os"
	"time"

	"golang.org/x/sys/unix"
)

// setTimes gives what was staged the times of the layer's entry. A time in the future becomes
// that of this Apply: a file that is dated ahead would stay newer than all that is built from
// it, and make(1) would rebuild that each time.
func (a *applier) setTimes(file *os.File, st unix.Stat_t) error {
	return setTimes(file, []unix.Timespec{a.past(st.Atim), a.past(st.Mtim)})
}

// setTimes is utimensat(2) on an open file. One that was opened with O_PATH will do, so a link
// gets times too.
func setTimes(file *os.File, times []unix.Timespec) error {
	return unix.UtimesNanoAt(int(file.Fd()), "", times, unix.AT_EMPTY_PATH|unix.AT_SYMLINK_NOFOLLOW)
}

func (a *applier) past(at unix.Timespec) unix.Timespec {
	if time.Unix(at.Unix()).After(a.begun) {
		at, _ = unix.TimeToTimespec(a.begun) // the present is in its range
	}
	return at
}

// folderTimes returns the times that the directory rel of target gets after changes in it:
// those of the layer's directory. If the host changed it since the layer began, the later
// modification time stays. nil: the layer has no such directory.
func (a *applier) folderTimes(dir *os.File, rel string) ([]unix.Timespec, error) {
	var host, layer unix.Stat_t
	if err := unix.Fstat(int(dir.Fd()), &host); err != nil {
		return nil, err
	}
	of, err := a.upper.openDir(rel)
	if gone(err) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	defer of.Close()
	if err := unix.Fstat(int(of.Fd()), &layer); err != nil {
		return nil, err
	}
	times := []unix.Timespec{a.past(layer.Atim), a.past(layer.Mtim)}
	changed, agents := time.Unix(host.Mtim.Unix()), time.Unix(times[1].Unix())
	if !changed.Before(a.since) && changed.After(agents) {
		times[1] = host.Mtim
	}
	return times, nil
}

// setFolderTimes leaves the times of a directory whose owner is another user: only the owner
// may set them.
func setFolderTimes(dir *os.File, times []unix.Timespec) error {
	if times == nil {
		return nil
	}
	if err := setTimes(dir, times); err != unix.EPERM {
		return err
	}
	return nil
}

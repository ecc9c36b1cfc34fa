package probe

import (
	"path"
	"unsafe"

	"golang.org/x/sys/unix"
)

// file opens a file, or asks for its permissions.
func file(kind, at string) Found {
	var stat unix.Stat_t
	err := unix.Stat(at, &stat)
	dir := err == nil && stat.Mode&unix.S_IFMT == unix.S_IFDIR
	regular := err == nil && stat.Mode&unix.S_IFMT == unix.S_IFREG
	switch {
	case kind == writing && err == unix.ENOENT:
		return makes(path.Dir(at))
	case err != nil:
		return Refused(err, "stat")
	case kind == exec && !regular:
		return Found{Errno: int(unix.EACCES), Detail: "it is no program"}
	case kind == exec:
		return may(at, unix.X_OK, "access")
	case kind == writing && !regular:
		return may(at, unix.W_OK, "access") // a directory, or a device, which opening may set to work
	case kind == read && !regular && !dir:
		return may(at, unix.R_OK, "access")
	}
	flags := unix.O_RDONLY
	if kind == writing {
		flags = unix.O_WRONLY
	}
	fd, err := unix.Open(at, flags|unix.O_CLOEXEC|unix.O_NOCTTY|unix.O_NONBLOCK, 0)
	if err != nil {
		return Refused(err, "open")
	}
	unix.Close(fd)
	return Found{Done: true, Detail: "opened"}
}

// makes asks whether a file could be made in the nearest directory that exists.
func makes(dir string) Found {
	for {
		var stat unix.Stat_t
		err := unix.Stat(dir, &stat)
		if err == nil {
			f := may(dir, unix.W_OK|unix.X_OK, "access to "+dir)
			if f.Done {
				f.Detail = "it can be made in " + dir
			}
			return f
		}
		if err != unix.ENOENT || dir == "/" {
			return Refused(err, "stat")
		}
		dir = path.Dir(dir)
	}
}

// may asks the kernel, which also looks at read-only and noexec mounts. It asks once, by
// number: the wrapper of x/sys would try to answer itself.
func may(at string, mode uint32, step string) Found {
	text, err := unix.BytePtrFromString(at)
	if err != nil {
		return Refused(err, step)
	}
	cwd := unix.AT_FDCWD
	if _, _, errno := unix.Syscall6(unix.SYS_FACCESSAT2, uintptr(cwd), uintptr(unsafe.Pointer(text)), uintptr(mode), unix.AT_EACCESS, 0, 0); errno != 0 {
		return Refused(errno, step)
	}
	return Found{Done: true, Detail: "the file system allows it"}
}

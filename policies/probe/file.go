package probe

import (
	"path"
	"syscall"
	"unsafe"
)

// Of faccessat2(2); package syscall has no names for these.
const (
	callFaccessat2   = 439
	atFDCWD          = -100
	atEAccess        = 0x200
	executes, writes = 1, 2
	reads            = 4
)

// file opens a file, or asks for its permissions.
func file(kind, at string) Found {
	var stat syscall.Stat_t
	err := syscall.Stat(at, &stat)
	dir := err == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFDIR
	regular := err == nil && stat.Mode&syscall.S_IFMT == syscall.S_IFREG
	switch {
	case kind == writing && err == syscall.ENOENT:
		return makes(path.Dir(at))
	case err != nil:
		return Refused(err, "stat")
	case kind == exec && !regular:
		return Found{Errno: int(syscall.EACCES), Detail: "it is no program"}
	case kind == exec:
		return executable(at)
	case kind == writing && !regular:
		return may(at, writes, "access") // a directory, or a device, which opening may set to work
	case kind == read && !regular && !dir:
		return may(at, reads, "access")
	}
	flags := syscall.O_RDONLY
	if kind == writing {
		flags = syscall.O_WRONLY
	}
	fd, err := syscall.Open(at, flags|syscall.O_CLOEXEC|syscall.O_NOCTTY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Refused(err, "open")
	}
	syscall.Close(fd)
	return Found{Done: true, Detail: "opened"}
}

// makes asks whether a file could be made in the nearest directory that exists.
func makes(dir string) Found {
	for {
		var stat syscall.Stat_t
		err := syscall.Stat(dir, &stat)
		if err == nil {
			f := may(dir, writes|executes, "access to "+dir)
			if f.Done {
				f.Detail = "it can be made in " + dir
			}
			return f
		}
		if err != syscall.ENOENT || dir == "/" {
			return Refused(err, "stat")
		}
		dir = path.Dir(dir)
	}
}

// executable asks for the permission, and tries the part of an execution that a list of what may be
// read refuses: no permission knows of such a list.
func executable(at string) Found {
	f := may(at, executes, "access")
	if !f.Done || !may(at, reads, "access").Done {
		return f
	}
	fd, err := syscall.Open(at, syscall.O_RDONLY|syscall.O_CLOEXEC|syscall.O_NONBLOCK, 0)
	if err != nil {
		return Refused(err, "open")
	}
	syscall.Close(fd)
	return f
}

// may asks the kernel, which also looks at read-only and noexec mounts.
func may(at string, mode uint32, step string) Found {
	text, err := syscall.BytePtrFromString(at)
	if err != nil {
		return Refused(err, step)
	}
	cwd := atFDCWD
	if _, _, errno := syscall.Syscall6(callFaccessat2, uintptr(cwd), uintptr(unsafe.Pointer(text)), uintptr(mode), atEAccess, 0, 0); errno != 0 {
		return Refused(errno, step)
	}
	return Found{Done: true, Detail: "the file system allows it"}
}

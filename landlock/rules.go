package landlock

import ll "github.com/landlock-lsm/go-landlock/landlock/syscall"

// Right is a set of what a rule allows.
type Right uint8

// The rights.
const (
	Read    Right = 1 << iota // read files, list directories
	Execute                   // execute files, for which the kernel wants Read, too
	Write                     // write and truncate files
	Make                      // make, remove, rename and link files; never devices
	Device                    // ioctl(2) on devices
)

// Rule allows something beneath a directory, or of a file.
type Rule struct {
	Path   string
	Rights Right
}

// Rules are all that is allowed.
type Rules struct {
	Files []Rule
	NoTCP bool // no TCP port may be bound or connected to
}

// accesses are the kernel's rights behind each Right.
var accesses = map[Right]uint64{
	Read:    ll.AccessFSReadFile | ll.AccessFSReadDir,
	Execute: ll.AccessFSExecute,
	Write:   ll.AccessFSWriteFile | ll.AccessFSTruncate,
	Make: ll.AccessFSRemoveDir | ll.AccessFSRemoveFile | ll.AccessFSMakeDir | ll.AccessFSMakeReg |
		ll.AccessFSMakeSock | ll.AccessFSMakeFifo | ll.AccessFSMakeSym | ll.AccessFSRefer,
	Device: ll.AccessFSIoctlDev,
}

// ofFiles are the rights that a rule on a file may have; the others are of directories.
const ofFiles = ll.AccessFSExecute | ll.AccessFSReadFile | ll.AccessFSWriteFile | ll.AccessFSTruncate | ll.AccessFSIoctlDev

// never are rights that no rule gives: the filter refuses to make devices, too.
const never = ll.AccessFSMakeChar | ll.AccessFSMakeBlock

// Versions of the kernel's interface from which it has a right (landlock(7)).
const (
	versionRefer    = 2 // Linux 5.19
	versionTruncate = 3 // 6.2
	versionTCP      = 4 // 6.7
	versionDevice   = 5 // 6.10
)

// handled are the rights that a kernel can refuse.
func handled(version int) (files, net uint64) {
	files = never
	for _, access := range accesses {
		files |= access
	}
	if version < versionTruncate {
		files &^= ll.AccessFSTruncate
	}
	if version < versionDevice {
		files &^= ll.AccessFSIoctlDev
	}
	if version >= versionTCP {
		net = ll.AccessNetBindTCP | ll.AccessNetConnectTCP
	}
	return files, net
}

// allowed are the kernel's rights for a rule.
func (r Rule) allowed(version int, directory bool) uint64 {
	files, _ := handled(version)
	var all uint64
	for right, access := range accesses {
		if r.Rights&right != 0 {
			all |= access
		}
	}
	if !directory {
		all &= ofFiles
	}
	return all & files
}

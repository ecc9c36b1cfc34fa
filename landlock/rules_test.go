package landlock

import (
	"testing"

	ll "github.com/landlock-lsm/go-landlock/landlock/syscall"
)

func TestAKernelHandlesWhatItKnows(t *testing.T) {
	t.Parallel()
	for version, want := range map[int]struct {
		truncate, device bool
		net              uint64
		lacks            string
	}{
		2:  {false, false, 0, "truncation, TCP ports, ioctl on devices"},
		3:  {true, false, 0, "TCP ports, ioctl on devices"},
		4:  {true, false, 3, "ioctl on devices"},
		5:  {true, true, 3, ""},
		99: {true, true, 3, ""}, // rights that are newer than this package are not handled
	} {
		files, net := handled(version)
		if got := files&ll.AccessFSTruncate != 0; got != want.truncate {
			t.Errorf("version %d handles truncation: %t", version, got)
		}
		if got := files&ll.AccessFSIoctlDev != 0; got != want.device {
			t.Errorf("version %d handles devices: %t", version, got)
		}
		if net != want.net || Lacks(version) != want.lacks {
			t.Errorf("version %d: ports %d, lacks %q", version, net, Lacks(version))
		}
		if files&ll.AccessFSResolveUnix != 0 {
			t.Errorf("version %d cuts processes that join later off from sockets", version)
		}
	}
}

// A rule with a right that its ruleset does not handle, or that a file cannot have, is
// refused by the kernel.
func TestARuleHasWhatItsPlaceCanHave(t *testing.T) {
	t.Parallel()
	all := Rule{Rights: Read | Execute | Write | Make | Device}
	for _, version := range []int{2, 3, 4, 5} {
		files, _ := handled(version)
		if got := all.allowed(version, true); got&^files != 0 || got&never != 0 || got != files&^never {
			t.Errorf("version %d: a directory may have %#x of %#x", version, got, files)
		}
		if got := all.allowed(version, false); got&^(files&ofFiles) != 0 || got&ll.AccessFSReadFile == 0 {
			t.Errorf("version %d: a file may have %#x", version, got)
		}
	}
	if got := (Rule{Rights: Read}).allowed(5, true); got&(ll.AccessFSWriteFile|ll.AccessFSMakeReg|ll.AccessFSTruncate) != 0 {
		t.Errorf("who reads may also %#x", got)
	}
}

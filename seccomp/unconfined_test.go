package seccomp

import (
	"testing"

	"golang.org/x/sys/unix"
)

// No profile lets a program reach AF_ALG, nor the calls that make a socket unseen; unconfined allows
// every other family. The program decides as the rules do, for 32-bit programs too.
func TestNoProfileReachesAFALG(t *testing.T) {
	t.Parallel()
	for _, name := range Names() {
		profile := mustProfile(t, name)
		for call, args := range map[string][6]uint64{"socket": {unix.AF_ALG, unix.SOCK_SEQPACKET}, "socketpair": {unix.AF_ALG, unix.SOCK_SEQPACKET}, "io_uring_setup": {1}} {
			if d := Decide(profile, call, args); d.Allowed() {
				t.Errorf("%s: %s: %s", name, call, d)
			}
		}
	}
	filter, err := Compile(mustProfile(t, Unconfined), 1)
	if err != nil {
		t.Fatal(err)
	}
	const i386Socket, i386Socketcall = 359, 102
	high := uint64(1)<<32 | unix.AF_ALG // the kernel reads an int
	for _, c := range []struct {
		number int32
		arch   uint32
		args   [6]uint64
		want   string
	}{
		{unix.SYS_SOCKET, unix.AUDIT_ARCH_X86_64, [6]uint64{unix.AF_ALG}, "EPERM"},
		{unix.SYS_SOCKET, unix.AUDIT_ARCH_X86_64, [6]uint64{high}, "EPERM"},
		{unix.SYS_SOCKET | 0x40000000, unix.AUDIT_ARCH_X86_64, [6]uint64{unix.AF_ALG}, "EPERM"}, // x32
		{i386Socket, unix.AUDIT_ARCH_I386, [6]uint64{unix.AF_ALG}, "EPERM"},
		{i386Socketcall, unix.AUDIT_ARCH_I386, [6]uint64{1}, "ENOSYS"},
		{unix.SYS_IO_URING_SETUP, unix.AUDIT_ARCH_X86_64, [6]uint64{1}, "ENOSYS"},
		{unix.SYS_SOCKET, unix.AUDIT_ARCH_X86_64, [6]uint64{unix.AF_VSOCK}, "allowed"},
		{i386Socket, unix.AUDIT_ARCH_I386, [6]uint64{unix.AF_INET}, "allowed"},
		{unix.SYS_MOUNT, unix.AUDIT_ARCH_X86_64, [6]uint64{}, "allowed"},
	} {
		got := filter.Answer(c.number, c.arch, c.args)
		if text := map[bool]string{true: "allowed", false: got.String()}[got.Allowed()]; text != c.want {
			t.Errorf("call %d of %#x: %s, want %s", c.number, c.arch, text, c.want)
		}
	}
}

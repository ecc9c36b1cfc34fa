package seccomp

import (
	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// unconfined allows all calls but those that lead to AF_ALG. Through such a socket a program
// could write to the page cache of a file that it may only read (CVE-2026-31431), and the
// files of /usr are the host's own.
//
// Two calls make sockets of any family where no filter can see which: io_uring, whose
// operations are in memory, and socketcall of 32-bit programs, whose arguments are. Both fail
// as from a kernel without them.
func unconfined() (*specs.LinuxSeccomp, error) {
	base, err := dockerDefault()
	if err != nil {
		return nil, err
	}
	absent, refused := uint(unix.ENOSYS), uint(unix.EPERM)
	return &specs.LinuxSeccomp{
		DefaultAction: specs.ActAllow,
		Architectures: base.Architectures, // programs of the other ABIs run, too
		Flags:         []specs.LinuxSeccompFlag{},
		Syscalls: []specs.LinuxSyscall{
			{Names: []string{"socket", "socketpair"}, Action: specs.ActErrno, ErrnoRet: &refused, Args: all(equals(0, unix.AF_ALG))},
			{Names: []string{"io_uring_setup", "socketcall"}, Action: specs.ActErrno, ErrnoRet: &absent},
		},
	}, nil
}

// unconfinedReasons are the rows of the profile for people.
func unconfinedReasons() builtin {
	const group, reason = "kernel-crypto", "through AF_ALG a program could write to files of the host that it may only read"
	family := condition{name: "socket", group: group, allowed: "every family but AF_ALG", reason: reason}
	pair := family
	pair.name = "socketpair"
	return builtin{name: Unconfined, conditions: []condition{family, pair},
		refusals: []refusal{{group: group, reason: "its operations make sockets that no filter sees; " + reason, names: []string{"io_uring_setup", "socketcall"}}}}
}

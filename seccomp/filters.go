package seccomp

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Where the options of setsockopt and prctl end: no kernel has a higher level or
// number, but for those of numberedByName. To say "any other number" takes a
// rule for each bit, and every start compiles all rules.
const (
	levelBits  = 9 // SOL_VSOCK, 287, is the highest of linux/socket.h
	optionBits = 7 // SO_PASSRIGHTS, 83, of asm-generic/socket.h; PR_FUTEX_HASH, 78, of linux/prctl.h
)

// numberedByName are prctl's options whose number spells their name.
var numberedByName = []uint32{unix.PR_SET_PTRACER, unix.PR_SET_VMA, unix.PR_GET_AUXV}

// socketFilters are the options of SOL_SOCKET that load a BPF program for a
// socket, classic or extended. The kernel takes them at that level only.
var socketFilters = []uint32{unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF,
	unix.SO_ATTACH_REUSEPORT_CBPF, unix.SO_ATTACH_REUSEPORT_EBPF}

// tcpKeys are options of IPPROTO_TCP that give a socket keys to sign with: they are
// charged to nobody, and only routers have a use for them (RFC 2385, RFC 5925).
var tcpKeys = []uint32{unix.TCP_MD5SIG, unix.TCP_MD5SIG_EXT, tcpAddKey}

// tcpAddKey is TCP_AO_ADD_KEY of linux/tcp.h.
const tcpAddKey = 38

// filterRefusals and filterConditions keep an agent from loading programs into
// the kernel. No limit holds their number: freeing some ten thousand has
// deadlocked Linux 6.18, and their code is in memory that the host's users share.

var filterRefusals = []refusal{
	// As from a kernel before 3.17: libseccomp then asks prctl.
	{reason: "programs in the kernel are the host's, and no limit holds their number; programs go on without a filter of their own",
		errno: uint(unix.ENOSYS), names: []string{"seccomp"}},
}

func filterConditions() []condition {
	return []condition{
		{name: "setsockopt",
			allowed: "every option but those that load a filter for a socket or give it keys of TCP's",
			reason:  "programs in the kernel are the host's, and no limit holds the number of either",
			accept: slices.Concat(exceptBelow(1, levelBits, 0, []uint32{unix.SOL_SOCKET, unix.IPPROTO_TCP}),
				optionsExcept(unix.SOL_SOCKET, socketFilters), optionsExcept(unix.IPPROTO_TCP, tcpKeys))},
		{name: "prctl",
			allowed: "every option but PR_SET_SECCOMP",
			reason:  "programs in the kernel are the host's, and no limit holds their number",
			accept: append(exceptBelow(0, optionBits, 0, []uint32{unix.PR_SET_SECCOMP}),
				oneOf(0, numberedByName...)...),
			// As from a kernel without filters: who can do without one looks for that.
			absent: oneOf(0, unix.PR_SET_SECCOMP), absentErrno: unix.EINVAL},
	}
}

// optionsExcept are setsockopt's options of one level but for the refused ones.
func optionsExcept(level uint32, refused []uint32) [][]specs.LinuxSeccompArg {
	var accept [][]specs.LinuxSeccompArg
	for _, option := range exceptBelow(2, optionBits, 0, refused) {
		accept = append(accept, append(all(equals(1, level)), option...))
	}
	return accept
}

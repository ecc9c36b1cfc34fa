package seccomp

import (
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"
)

// Upper bounds of setsockopt's levels and options and of prctl's options: no kernel has
// higher ones, except those of numberedByName. "Any other number" takes one rule per bit,
// so fewer bits make a shorter program.
const (
	levelBits  = 9 // SOL_VSOCK, 287, is the highest of linux/socket.h
	optionBits = 7 // SO_PASSRIGHTS, 83, of asm-generic/socket.h; PR_FUTEX_HASH, 78, of linux/prctl.h
)

// numberedByName are prctl options whose number spells their name in ASCII.
var numberedByName = []uint32{unix.PR_SET_PTRACER, unix.PR_SET_VMA, unix.PR_GET_AUXV}

// socketFilters are the options of SOL_SOCKET that attach a classic or extended BPF program
// to a socket. The kernel accepts them at that level only.
var socketFilters = []uint32{unix.SO_ATTACH_FILTER, unix.SO_ATTACH_BPF,
	unix.SO_ATTACH_REUSEPORT_CBPF, unix.SO_ATTACH_REUSEPORT_EBPF}

// tcpKeys are options of IPPROTO_TCP that give a socket signing keys. No cgroup is charged
// for the keys, and only routers use them (RFC 2385, RFC 5925).
var tcpKeys = []uint32{unix.TCP_MD5SIG, unix.TCP_MD5SIG_EXT, tcpAddKey}

// tcpAddKey is TCP_AO_ADD_KEY of linux/tcp.h.
const tcpAddKey = 38

// filterRefusals and filterConditions keep an agent from loading programs into the kernel.
// No limit bounds their number: freeing some ten thousand of them deadlocked Linux 6.18,
// and they share executable memory with the programs of the host's users.
var filterRefusals = []refusal{
	// ENOSYS as from a kernel before 3.17: libseccomp then tries prctl.
	{group: "kernel-programs", reason: "only the host may load programs into the kernel, and no limit bounds their number; programs work without a filter of their own",
		errno: uint(unix.ENOSYS), names: []string{"seccomp"}},
}

// filterConditions are the rows for calls that load filters beside doing much else. The
// levels of setsockopt are divided into three: all but two pass with any option, and those
// two with all options but the ones listed.
func filterConditions() []condition {
	return []condition{
		{name: "setsockopt", group: "kernel-programs",
			allowed: "every option but those that load a filter for a socket or give it keys of TCP's",
			reason:  "only the host may load programs into the kernel, and no limit bounds the number of either",
			accept: slices.Concat(exceptBelow(1, levelBits, 0, []uint32{unix.SOL_SOCKET, unix.IPPROTO_TCP}),
				optionsExcept(unix.SOL_SOCKET, socketFilters), optionsExcept(unix.IPPROTO_TCP, tcpKeys))},
		{name: "prctl", group: "kernel-programs",
			allowed: "every option but PR_SET_SECCOMP",
			reason:  "only the host may load programs into the kernel, and no limit bounds their number",
			accept: append(exceptBelow(0, optionBits, 0, []uint32{unix.PR_SET_SECCOMP}),
				oneOf(0, numberedByName...)...),
			// EINVAL as from a kernel without seccomp filters: programs for which a filter is optional check for it.
			absent: oneOf(0, unix.PR_SET_SECCOMP), absentErrno: unix.EINVAL},
	}
}

// optionsExcept matches all of setsockopt's options at one level except the refused ones.
func optionsExcept(level uint32, refused []uint32) [][]specs.LinuxSeccompArg {
	var accept [][]specs.LinuxSeccompArg
	for _, option := range exceptBelow(2, optionBits, 0, refused) {
		accept = append(accept, append(all(equals(1, level)), option...))
	}
	return accept
}

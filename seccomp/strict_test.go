package seccomp

import (
	"cmp"
	"testing"

	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var strictCalls = []struct {
	call call
	want string
}{
	{call{name: "openat"}, "allow"},
	{call{name: "mmap"}, "allow"},
	{call{name: "inotify_init1"}, "allow"},
	{call{name: "splice"}, "allow"},
	{call{name: "copy_file_range"}, "allow"},
	{call{name: "clone", args: [6]uint64{0x3d0f00}}, "allow"},
	{call{name: "clone", args: [6]uint64{unix.CLONE_NEWUSER}}, "EPERM"},
	{call{name: "clone3"}, "ENOSYS"},
	{call{name: "socket", args: [6]uint64{unix.AF_UNIX | high}}, "allow"},
	{call{name: "socketpair", args: [6]uint64{unix.AF_UNIX}}, "allow"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET, unix.SOCK_STREAM}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_INET6, unix.SOCK_DGRAM}}, "EPERM"},
	{call{name: "socket", args: [6]uint64{unix.AF_NETLINK, unix.SOCK_RAW}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, unix.SO_ATTACH_FILTER}}, "EPERM"},
	{call{name: "setsockopt", args: [6]uint64{3, unix.SOL_SOCKET, unix.SO_SNDBUF}}, "allow"},
	{call{name: "prctl", args: [6]uint64{unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER}}, "EINVAL"},
	{call{name: "seccomp"}, "ENOSYS"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TCGETS}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSCTTY}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCGWINSZ | high}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.FICLONE}}, "allow"},
	{call{name: "ioctl", args: [6]uint64{0, unix.TIOCSTI}}, "EPERM"},
	{call{name: "ioctl", args: [6]uint64{0, 0xae80}}, "EPERM"}, // KVM_RUN
	{call{name: "personality", args: [6]uint64{0xffffffff}}, "EPERM"},
	{call{name: "ptrace"}, "EPERM"},
	{call{name: "process_vm_readv"}, "EPERM"},
	{call{name: "process_vm_writev"}, "EPERM"},
	{call{name: "memfd_create"}, "EPERM"},
	{call{name: "msgget"}, "EPERM"},
	{call{name: "sync"}, "EPERM"},
	{call{name: "syncfs"}, "allow"},
	{call{number: 1000}, "ENOSYS"},
}

func TestStrictAnswers(t *testing.T) {
	t.Parallel()
	f := compileBuiltin(t, Strict)
	for _, row := range strictCalls {
		if got := f.run(t, row.call); got != row.want {
			t.Errorf("%v: %s, want %s", row.call, got, row.want)
		}
	}
}

// Each row of strict refuses something that standard allows.
func TestStrictRowsAreNotIdle(t *testing.T) {
	t.Parallel()
	standard := mustProfile(t, Standard)
	for _, row := range strictRefusals {
		for _, name := range row.names {
			if !named(standard, name) {
				t.Errorf("standard refuses %s already", name)
			}
		}
	}
}

// Each profile allows nothing that the one before it refuses.
func TestNarrowerProfilesAllowNoMore(t *testing.T) {
	t.Parallel()
	for i, name := range filtered[1:] {
		wider, narrower := compileBuiltin(t, filtered[i]), compileBuiltin(t, name)
		rapid.Check(t, func(t *rapid.T) {
			c := drawCall(t)
			if narrower.run(t, c) == "allow" && wider.run(t, c) != "allow" {
				t.Fatalf("%v: %s allows it, %s does not", c, name, filtered[i])
			}
		})
	}
}

// Whatever a rule of a narrower profile accepts, with any other bit set as well, the wider one
// accepts, too: random arguments rarely have two bits that matter.
func TestNarrowerRulesAcceptNoOtherBit(t *testing.T) {
	t.Parallel()
	for i, name := range filtered[1:] {
		wider, narrower := mustProfile(t, filtered[i]), mustProfile(t, name)
		check := func(call string, args [6]uint64) {
			if Decide(narrower, call, args).Allowed() && !Decide(wider, call, args).Allowed() {
				t.Errorf("%s%#x: %s allows it, %s does not", call, args, name, filtered[i])
			}
		}
		for _, rule := range narrower.Syscalls {
			var args [6]uint64
			for _, arg := range rule.Args {
				args[arg.Index] = arg.ValueTwo
			}
			for _, call := range rule.Names {
				check(call, args)
				for bit := 0; bit < 6*64 && len(rule.Args) > 0; bit++ {
					set := args
					set[bit/64] ^= 1 << (bit % 64)
					check(call, set)
				}
			}
		}
	}
}

// The largest number in a profile decides where ENOSYS begins; every profile must answer probes
// for new calls as standard does.
func TestProbesForNewCallsGetTheSameAnswer(t *testing.T) {
	t.Parallel()
	standard := compileBuiltin(t, Standard)
	for _, name := range filtered[1:] {
		narrower := compileBuiltin(t, name)
		for number := uint32(400); number < 600; number++ {
			a, b := standard.run(t, call{number: number}), narrower.run(t, call{number: number})
			if (a == "ENOSYS") != (b == "ENOSYS") {
				t.Errorf("call %d: standard %s, %s %s", number, a, name, b)
			}
		}
	}
}

// A refused call is refused with any argument, and no foreign call is ever allowed.
func TestNothingPassesByOtherBits(t *testing.T) {
	t.Parallel()
	filters := map[string]filter{}
	for _, name := range filtered {
		filters[name] = compileBuiltin(t, name)
	}
	foreign := []uint32{unix.AUDIT_ARCH_I386, unix.AUDIT_ARCH_ARM, unix.AUDIT_ARCH_S390X, unix.AUDIT_ARCH_MIPS, 1}
	rapid.Check(t, func(t *rapid.T) {
		c := drawCall(t)
		for name, f := range filters {
			level, err := find(name)
			if err != nil {
				t.Fatal(err)
			}
			if level.refusalOf(c.name) != nil && f.run(t, c) == "allow" {
				t.Fatalf("%s: %v is allowed", name, c)
			}
			x32 := c
			x32.number += x32Bit
			if got := f.run(t, x32); got != "kill" {
				t.Fatalf("%s: x32 %v: %s", name, c, got)
			}
			c.arch = rapid.SampledFrom(foreign).Draw(t, "arch")
			if got := f.run(t, c); got != "kill" {
				t.Fatalf("%s: %v on architecture %#x: %s", name, c, c.arch, got)
			}
		}
	})
}

// The kernel reads the low half of the arguments that have conditions, so
// the high halves must not change the answer.
func TestHighHalvesDoNotCount(t *testing.T) {
	t.Parallel()
	f := compileBuiltin(t, Standard)
	rapid.Check(t, func(t *rapid.T) {
		c := drawCallOf(t, rapid.SampledFrom(limited))
		want := f.run(t, c)
		for i := range c.args {
			c.args[i] ^= uint64(rapid.Uint32().Draw(t, "high")) << 32
		}
		if got := f.run(t, c); got != want {
			t.Fatalf("%v: %s, without the high bits %s", c, got, want)
		}
	})
}

// limited are calls that a profile allows in part.
var limited = []string{"ioctl", "socket", "clone", "mknodat", "personality", "socketpair", "setsockopt", "prctl", "fcntl", "renameat2", "mmap"}

// drawCall draws a native call, often one with conditions.
func drawCall(t *rapid.T) call {
	old := rapid.Custom(func(t *rapid.T) string {
		return cmp.Or(nameOf(rapid.Uint32Range(0, 334).Draw(t, "number")), "read")
	})
	return drawCallOf(t, rapid.OneOf(rapid.SampledFrom(limited), old))
}

// drawCallOf draws arguments that are near those of the tables.
func drawCallOf(t *rapid.T, names *rapid.Generator[string]) call {
	c := call{name: names.Draw(t, "name")}
	small := rapid.Uint64Range(0, 50)
	word := rapid.OneOf(small, rapid.Uint64(), rapid.Uint64Range(0x5400, 0x5460),
		rapid.Map(small, func(v uint64) uint64 { return v | high }),
		rapid.Map(rapid.IntRange(0, 63), func(bit int) uint64 { return 1 << bit }))
	for i := range c.args {
		c.args[i] = word.Draw(t, "argument")
	}
	return c
}

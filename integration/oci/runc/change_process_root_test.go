//go:build root

package runc

import (
	"math/rand/v2"
	"os"

	"github.com/opencontainers/runtime-spec/specs-go"
)

func pointer[T any](value T) *T { return &value }

var processChanges = []change{
	{"nothing", func(*bundle, *rand.Rand) {}},
	{"user", func(b *bundle, d *rand.Rand) {
		b.process().User = specs.User{UID: pick[uint32](d, 1, 1000, 65534), GID: pick[uint32](d, 0, 100, 65534)}
	}},
	{"user with groups", func(b *bundle, d *rand.Rand) {
		b.process().User = specs.User{UID: 1000, GID: 1000, AdditionalGids: []uint32{5, 10, pick[uint32](d, 0, 4242)}}
	}},
	{"umask", func(b *bundle, d *rand.Rand) { b.process().User.Umask = pointer(pick[uint32](d, 0, 0o27, 0o77)) }},
	{"user beyond all", func(b *bundle, _ *rand.Rand) { b.process().User.UID = 1<<32 - 1 }},
	{"cwd that is there", func(b *bundle, _ *rand.Rand) { b.process().Cwd = "/tmp" }},
	{"cwd that is made", func(b *bundle, d *rand.Rand) { b.process().Cwd = pick(d, "/work/deep", "/new") }},
	{"cwd with dots", func(b *bundle, _ *rand.Rand) { b.process().Cwd = "/tmp/../tmp/./" }},
	{"cwd by a link", func(b *bundle, _ *rand.Rand) { b.site.link("/tmp", "rootfs/link"); b.process().Cwd = "/link" }},
	{"cwd is a file", func(b *bundle, _ *rand.Rand) { b.process().Cwd = "/probe" }},
	{"cwd relative", func(b *bundle, _ *rand.Rand) { b.process().Cwd = "tmp" }},
	{"cwd empty", func(b *bundle, _ *rand.Rand) { b.process().Cwd = "" }},
	{"no arguments", func(b *bundle, _ *rand.Rand) { b.process().Args = nil }},
	{"empty argument", func(b *bundle, _ *rand.Rand) { b.process().Args = []string{""} }},
	{"no such program", func(b *bundle, d *rand.Rand) {
		b.process().Args = []string{pick(d, "/none", "none", "./none", "/tmp/none/x")}
	}},
	{"program is a folder", func(b *bundle, _ *rand.Rand) { b.process().Args = []string{"/tmp"} }},
	{"program may not execute", func(b *bundle, _ *rand.Rand) {
		b.site.write("rootfs/x", "x")
		_ = os.Chmod(b.site.path("rootfs/x"), 0o644)
		b.process().Args = []string{"/x"}
	}},
	{"program without interpreter", func(b *bundle, _ *rand.Rand) { b.process().Args = []string{"/exec"} }},
	{"program by PATH", func(b *bundle, _ *rand.Rand) { b.process().Args[0] = "probe" }},
	{"program by no PATH", func(b *bundle, _ *rand.Rand) { b.process().Args[0], b.process().Env = "probe", []string{"A=1"} }},
	{"environment empty", func(b *bundle, _ *rand.Rand) { b.process().Env = nil }},
	{"environment odd", func(b *bundle, d *rand.Rand) {
		b.process().Env = append(b.process().Env, "TWICE=1", "TWICE=2", "EMPTY=", "LINE=a\nb", pick(d, "HOME=/elsewhere", "HOME="))
	}},
	{"environment without a value", func(b *bundle, _ *rand.Rand) { b.process().Env = append(b.process().Env, "NOTHING") }},
	{"environment with a NUL", func(b *bundle, _ *rand.Rand) { b.process().Env = append(b.process().Env, "A=\x00b") }},
	{"no process", func(b *bundle, _ *rand.Rand) { b.Spec.Process = &specs.Process{} }},
	{"terminal without a socket", func(b *bundle, _ *rand.Rand) { b.process().Terminal = true }},
	{"socket without a terminal", func(b *bundle, _ *rand.Rand) { b.flags = []string{"--console-socket", "none"} }},
	{"terminal with no such socket", func(b *bundle, _ *rand.Rand) {
		b.process().Terminal, b.flags = true, []string{"--console-socket", "none"}
	}},
	{"rlimits", func(b *bundle, d *rand.Rand) {
		b.process().Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_NOFILE", Soft: pick[uint64](d, 64, 100), Hard: 512},
			{Type: pick(d, "RLIMIT_CORE", "RLIMIT_CPU", "RLIMIT_FSIZE", "RLIMIT_STACK", "RLIMIT_NPROC"), Soft: 1 << 20, Hard: 1 << 20}}
	}},
	{"no rlimits", func(b *bundle, _ *rand.Rand) { b.process().Rlimits = nil }},
	{"rlimit soft above hard", func(b *bundle, _ *rand.Rand) {
		b.process().Rlimits = []specs.POSIXRlimit{{Type: "RLIMIT_CORE", Soft: 2, Hard: 1}}
	}},
	{"rlimit twice", func(b *bundle, _ *rand.Rand) {
		b.process().Rlimits = append(b.process().Rlimits, b.process().Rlimits[0])
	}},
	{"rlimit unknown", func(b *bundle, d *rand.Rand) {
		b.process().Rlimits = []specs.POSIXRlimit{{Type: pick(d, "RLIMIT_FUN", "NOFILE", "rlimit_nofile", "")}}
	}},
	{"out-of-memory score", func(b *bundle, d *rand.Rand) { b.process().OOMScoreAdj = pointer(pick(d, 0, 500, 1000)) }},
	{"out-of-memory score wrong", func(b *bundle, d *rand.Rand) { b.process().OOMScoreAdj = pointer(pick(d, 1001, -2000)) }},
	{"scheduler", func(b *bundle, d *rand.Rand) {
		b.process().Scheduler = &specs.Scheduler{Policy: pick(d, specs.SchedOther, specs.SchedBatch, specs.SchedIdle), Nice: pick[int32](d, 0, 5)}
	}},
	{"scheduler wrong", func(b *bundle, d *rand.Rand) {
		b.process().Scheduler = pick(d, &specs.Scheduler{}, &specs.Scheduler{Policy: specs.SchedOther, Nice: 40}, &specs.Scheduler{Policy: "FAIR"},
			&specs.Scheduler{Policy: specs.SchedBatch, Priority: 4}, &specs.Scheduler{Policy: specs.SchedOther, Runtime: 4})
	}},
	{"io priority", func(b *bundle, d *rand.Rand) {
		b.process().IOPriority = &specs.LinuxIOPriority{Class: pick(d, specs.IOPRIO_CLASS_BE, specs.IOPRIO_CLASS_IDLE), Priority: d.IntN(8)}
	}},
	{"io priority wrong", func(b *bundle, d *rand.Rand) {
		b.process().IOPriority = &specs.LinuxIOPriority{Class: pick(d, specs.IOPRIO_CLASS_BE, "FAST"), Priority: pick(d, 8, -1)}
	}},
	{"affinity", func(b *bundle, d *rand.Rand) {
		b.process().ExecCPUAffinity = &specs.CPUAffinity{Initial: "0", Final: pick(d, "0", "0-1", "9", "x")}
	}},
	{"apparmor", func(b *bundle, d *rand.Rand) { b.process().ApparmorProfile = pick(d, "unconfined", "none-such") }},
	{"selinux", func(b *bundle, _ *rand.Rand) { b.process().SelinuxLabel = "system_u:system_r:none_t:s0" }},
	{"more descriptors", func(b *bundle, d *rand.Rand) { b.flags = []string{"--preserve-fds", pick(d, "1", "3")} }},
	{"descriptors by no number", func(b *bundle, d *rand.Rand) { b.flags = []string{"--preserve-fds", pick(d, "x", "-1", "0")} }},
	{"no pivot", func(b *bundle, _ *rand.Rand) { b.flags = []string{"--no-pivot"} }},
	{"no new keyring", func(b *bundle, _ *rand.Rand) { b.flags = []string{"--no-new-keyring"} }},
	{"pidfd socket that is none", func(b *bundle, _ *rand.Rand) { b.flags = []string{"--pidfd-socket", "none"} }},
}

//go:build root

package oci

import (
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
)

// Variables that make a copy of the test binary play a runtime on an older kernel: it becomes
// the program, without some system calls.
const (
	olderProgram = "CLOVE_TEST_OLDER_PROGRAM"
	olderWithout = "CLOVE_TEST_OLDER_WITHOUT"
)

// lacking is a system call that older kernels lack: its number, an argument and its value, and
// the error that stands for it.
type lacking struct {
	call, argument, value uint32
	fault                 unix.Errno
}

var (
	pidfdInfo = lacking{unix.SYS_IOCTL, 1, 0xC040FF0B, unix.ENOTTY}
	accounts  = lacking{unix.SYS_SOCKET, 2, unix.NETLINK_GENERIC, unix.EPROTONOSUPPORT}

	olderKernels = map[string][]lacking{"6.1": {pidfdInfo}, "5.15": {pidfdInfo, accounts}}
)

func init() {
	program := os.Getenv(olderProgram)
	if program == "" {
		return
	}
	runtime.LockOSThread() // the filter belongs to the thread, which becomes the program
	err := forgo(olderKernels[os.Getenv(olderWithout)])
	if err == nil {
		err = unix.Exec(program, os.Args, os.Environ())
	}
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}

// forgo installs a filter that answers calls as a kernel without them, for this thread and its
// children.
func forgo(calls []lacking) error {
	const number, arguments = 0, 16 // struct seccomp_data
	load := func(at uint32) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_LD | unix.BPF_W | unix.BPF_ABS, K: at}
	}
	equal := func(value uint32, otherwise uint8) unix.SockFilter {
		return unix.SockFilter{Code: unix.BPF_JMP | unix.BPF_JEQ | unix.BPF_K, K: value, Jf: otherwise}
	}
	answer := func(how uint32) unix.SockFilter { return unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K, K: how} }
	var filter []unix.SockFilter
	for _, c := range calls {
		filter = append(filter, load(number), equal(c.call, 3), load(arguments+8*c.argument), equal(c.value, 1),
			answer(unix.SECCOMP_RET_ERRNO|uint32(c.fault)))
	}
	filter = append(filter, answer(unix.SECCOMP_RET_ALLOW))
	program := unix.SockFprog{Len: uint16(len(filter)), Filter: &filter[0]}
	return unix.Prctl(unix.PR_SET_SECCOMP, unix.SECCOMP_MODE_FILTER, uintptr(unsafe.Pointer(&program)), 0, 0)
}

// onKernel runs clove-oci as on an older kernel from now on.
func (h *held) onKernel(release string) {
	h.t.Helper()
	self, err := os.Executable()
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Setenv(olderProgram, h.Binary)
	h.t.Setenv(olderWithout, release)
	h.Binary = self
}

// source returns from where the container's monitor learns how it ended.
func (h *held) source(id string) string {
	h.t.Helper()
	var order struct{ Source string }
	decode(h.t, filepath.Join(h.Root, id, "keeper.json"), &order)
	return order.Source
}

// TestTheKernelItselfTellsHowItEnded: in the way of its release. The virtual machine's kernel
// is too old for the pidfd's way.
func TestTheKernelItselfTellsHowItEnded(t *testing.T) {
	h := newHeld(t)
	var name unix.Utsname
	if err := unix.Uname(&name); err != nil {
		t.Fatal(err)
	}
	release := unix.ByteSliceToString(name.Release[:])
	var major, minor int
	if _, err := fmt.Sscanf(release, "%d.%d", &major, &minor); err != nil {
		t.Fatalf("Linux %s: %v", release, err)
	}
	want := "taskstats"
	if major > 6 || major == 6 && minor >= 15 {
		want = "pidfd"
	}
	h.begin("one", h.Bundle("exit 3", annotated(recordAt("one.json")...)))
	if got := h.source("one"); got != want {
		t.Errorf("Linux %s: %s tells, not %s", release, got, want)
	}
	h.finish("one")
	if got := h.record("one.json"); got.Status != agent.StatusExited || got.ExitCode != 3 {
		t.Errorf("Linux %s: %s %d: %+v", release, got.Status, got.ExitCode, got.Error)
	}
}

// TestAnOlderKernelTellsHowItEnded: in another way.
func TestAnOlderKernelTellsHowItEnded(t *testing.T) {
	h := newHeld(t)
	h.onKernel("6.1")
	h.begin("one", h.Bundle("exit 3", annotated(recordAt("one.json")...)))
	if got := h.source("one"); got != "taskstats" {
		t.Fatalf("%s tells", got)
	}
	h.finish("one")
	h.saysHowItEnded()
}

// TestAnOldKernelGetsNoRecord: a container with the annotation is refused.
func TestAnOldKernelGetsNoRecord(t *testing.T) {
	h := newHeld(t)
	h.onKernel("5.15")
	got := h.Do("create", "--bundle", h.Bundle(forever, annotated(recordAt("one.json")...)), "one")
	if got.Status != 1 || !strings.Contains(got.Err, oci.AnnotationRecord) || !strings.Contains(got.Err, "Linux 6.15") {
		t.Errorf("a record that cannot be true was promised: %+v", got)
	}
	if _, err := os.Stat(filepath.Join(h.Root, "one")); !os.IsNotExist(err) {
		t.Errorf("something is left: %v", err)
	}
}

// TestAMonitorThatComesAgainListensAgain: on an older kernel. It does not know of processes that
// ended in between.
func TestAMonitorThatComesAgainListensAgain(t *testing.T) {
	h := newHeld(t)
	h.onKernel("6.1")
	directory, share := h.shared()
	pid := h.begin("one", h.Bundle("trap 'exit 5' TERM; echo >/tmp/ready; while :; do sleep 0.1; done", share, annotated(recordAt("one.json")...)))
	h.await(directory, "ready") // a TERM before the trap would end it without the trap's status
	h.killMonitor()
	h.State("one") // any call starts the monitor again
	h.monitor()
	if err := unix.Kill(pid, unix.SIGTERM); err != nil {
		t.Fatal(err)
	}
	h.finish("one")
	if got := h.record("one.json"); got.ExitCode != 5 || got.Error != nil {
		t.Errorf("%+v", got)
	}
}

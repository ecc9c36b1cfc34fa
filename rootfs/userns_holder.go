package rootfs

/*
#define _GNU_SOURCE
#include <errno.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <unistd.h>

static char stack[16384] __attribute__((aligned(16)));

static int wait_for_death(void *parent)
{
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	// If clove died before the prctl, no signal will come.
	if (getppid() != (pid_t)(intptr_t)parent)
		return 1;
	for (;;)
		pause();
}

// The raw system call: libc's leaves out two signals of its own.
static void set_mask(const uint64_t *mask, uint64_t *old)
{
	syscall(SYS_rt_sigprocmask, SIG_SETMASK, mask, old, sizeof *mask);
}

static int start_holder(void)
{
	const uint64_t all = ~(uint64_t)0;
	uint64_t old;
	set_mask(&all, &old);
	int pid = clone(wait_for_death, stack + sizeof stack,
		CLONE_VM | CLONE_FILES | CLONE_NEWUSER | SIGCHLD, (void *)(intptr_t)getpid());
	int result = pid < 0 ? -errno : pid;
	set_mask(&old, NULL);
	return result;
}
*/
import "C"

import (
	"errors"
	"fmt"

	"golang.org/x/sys/unix"
)

// holder is a process in a new user namespace. It keeps the namespace alive until clove has
// opened it.
//
// It shares clove's memory and descriptors (CLONE_VM, CLONE_FILES) instead of copying them
// as fork(2) does. Copied page tables cost 2 ms, most of it later, when clove writes to
// shared pages. So the holder only waits for its death, on a stack of its own, with every
// signal except SIGKILL blocked: a handler of Go's runtime must not run in it. Decision 16
// (docs/decisions) has the measurements.
type holder int

// startHolder starts a holder. There is one stack for it, so only one may live at a time.
func startHolder() (holder, error) {
	pid := int(C.start_holder())
	if pid < 0 {
		return 0, unix.Errno(-pid)
	}
	return holder(pid), nil
}

// proc is the path of a file in the holder's /proc directory.
func (h holder) proc(name string) string { return fmt.Sprintf("/proc/%d/%s", int(h), name) }

// end kills and reaps the holder. Its pid cannot be reused before that.
func (h holder) end() error {
	if err := unix.Kill(int(h), unix.SIGKILL); err != nil {
		return err
	}
	for {
		if _, err := unix.Wait4(int(h), nil, 0, nil); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

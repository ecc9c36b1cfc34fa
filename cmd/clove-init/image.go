package main

import (
	"fmt"
	"os"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/rlimits"
)

// image is the agent's execve(2), fully prepared. Between the setting of the rlimits and
// the call nothing may allocate, because a small RLIMIT_AS or RLIMIT_DATA would crash Go's
// runtime there.
type image struct {
	path     string
	limits   []limit
	confined bool     // Landlock rules are entered
	ruleset  *os.File // the rules
	// The C strings are fields, so that the collector keeps what execve(2) points to.
	path0   *byte
	argv    []*byte
	env     []*byte
	filters filters
}

// limit is one rlimit as prlimit64(2) takes it.
type limit struct {
	name     string
	resource uintptr
	value    [2]uint64 // soft, hard
}

// newImage allocates everything that execute needs.
func newImage(path string, orders *initproto.Orders) (*image, error) {
	i := &image{path: path, filters: filtersOf(orders), confined: orders.Confined, ruleset: orders.Ruleset}
	for _, r := range orders.Rlimits {
		resource, _ := rlimits.Resource(r.Name) // Validate knows it
		i.limits = append(i.limits, limit{r.Name, uintptr(resource), [2]uint64{r.Soft, r.Hard}})
	}
	var err error
	if i.path0, err = syscall.BytePtrFromString(path); err != nil {
		return nil, err
	}
	if i.argv, err = syscall.SlicePtrFromStrings(orders.Argv); err != nil {
		return nil, err
	}
	if i.env, err = syscall.SlicePtrFromStrings(orders.Env); err != nil {
		return nil, err
	}
	return i, nil
}

// execute returns only after a failure. It uses neither syscall.Exec, which would restore
// the RLIMIT_NOFILE that the runtime found at its start, nor syscall.Setrlimit, for the
// same reason.
func (i *image) execute() *initproto.ExecFailed {
	if failure := setLimits(i.limits); failure != nil {
		return failure
	}
	if failure := unblockSignals(); failure != nil {
		return failure
	}
	if failure := i.enterDomain(); failure != nil {
		return failure
	}
	return execFailed(i.path, i.become())
}

// executeFiltered is execute under the agent's own filter. Once that is on, this thread makes
// two calls: the one in which it waits for the supervisor, and execve(2). The filter may
// refuse all others. The companion does the rest.
func (i *image) executeFiltered(c *companion) *initproto.ExecFailed {
	if failure := unblockSignals(); failure != nil {
		return failure
	}
	if failure := i.enterDomain(); failure != nil {
		return failure
	}
	close(c.begun)
	listener, errno := i.filters.load()
	if errno != 0 {
		c.failed(startFailed("filter", errno))
		return nil
	}
	c.listener = listener
	c.stage.Store(stageFiltered)
	if errno = i.wait(c); errno != 0 {
		c.failed(startFailed("filter", errno))
		return nil
	}
	c.failed(execFailed(i.path, i.become()))
	return nil
}

// wait returns when the agent may execute: the supervisor has seen the filter, or there is no
// listener to wait at. An error means that there is no supervisor any more. From the filter to
// execve(2) nothing may enter Go's scheduler, as the start of a function may that is not
// marked nosplit: the filter may refuse what it needs.
//
//go:nosplit
func (i *image) wait(c *companion) unix.Errno {
	if c.listener != noListener {
		_, _, errno := unix.RawSyscall(unix.SYS_PRCTL, initproto.GateOption, 0, 0)
		return errno
	}
	for c.stage.Load() == stageFiltered {
	}
	if c.stage.Load() != stageTold {
		return unix.ECANCELED // the companion knows why
	}
	return 0
}

// become is execve(2).
//
//go:nosplit
func (i *image) become() unix.Errno {
	_, _, errno := unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(i.path0)),
		uintptr(unsafe.Pointer(&i.argv[0])), uintptr(unsafe.Pointer(&i.env[0])))
	return errno
}

// setLimits sets this process's rlimits.
func setLimits(limits []limit) *initproto.ExecFailed {
	for n := range limits {
		limit := &limits[n]
		_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, limit.resource,
			uintptr(unsafe.Pointer(&limit.value)), 0, 0, 0)
		if errno != 0 {
			return startFailed("rlimit "+limit.name, fmt.Errorf("soft %d, hard %d: %w",
				limit.value[0], limit.value[1], errno))
		}
	}
	return nil
}

// unblockSignals comes late, so that the runtime handles none that is meant for the agent.
// SIGURG, with which the runtime interrupts a thread that is busy for long, has no handler
// any more either: under a filter the thread may not be able to return from one.
func unblockSignals() *initproto.ExecFailed {
	if errno := setAction(unix.SIGURG, &byDefault); errno != 0 {
		return startFailed("signals", errno)
	}
	var none [sigsetBytes]byte
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&none)), 0, sigsetBytes, 0, 0)
	if errno != 0 {
		return startFailed("signal mask", errno)
	}
	return nil
}

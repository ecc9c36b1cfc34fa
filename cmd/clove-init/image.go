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
	path0  *byte
	argv   []*byte
	env    []*byte
	filter *unix.SockFprog // nil: the sandbox's filter is all
}

// limit is one rlimit as prlimit64(2) takes it.
type limit struct {
	name     string
	resource uintptr
	value    [2]uint64 // soft, hard
}

// newImage allocates everything that execute needs.
func newImage(path string, orders *initproto.Orders) (*image, error) {
	i := &image{path: path, filter: filterOf(orders), confined: orders.Confined, ruleset: orders.Ruleset}
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
	for n := range i.limits {
		limit := &i.limits[n]
		_, _, errno := unix.RawSyscall6(unix.SYS_PRLIMIT64, 0, limit.resource,
			uintptr(unsafe.Pointer(&limit.value)), 0, 0, 0)
		if errno != 0 {
			return startFailed("rlimit "+limit.name, fmt.Errorf("soft %d, hard %d: %w",
				limit.value[0], limit.value[1], errno))
		}
	}
	// Signals are unblocked last, so that the runtime handles none that is meant for the agent.
	var none [sigsetBytes]byte
	_, _, errno := unix.RawSyscall6(unix.SYS_RT_SIGPROCMASK, unix.SIG_SETMASK,
		uintptr(unsafe.Pointer(&none)), 0, sigsetBytes, 0, 0)
	if errno != 0 {
		return startFailed("signal mask", errno)
	}
	if failure := i.enterDomain(); failure != nil {
		return failure
	}
	if failure := i.loadFilter(); failure != nil {
		return failure
	}
	_, _, errno = unix.RawSyscall(unix.SYS_EXECVE, uintptr(unsafe.Pointer(i.path0)),
		uintptr(unsafe.Pointer(&i.argv[0])), uintptr(unsafe.Pointer(&i.env[0])))
	return execFailed(i.path, errno)
}

package store

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"syscall"
	"time"

	bbolterrors "go.etcd.io/bbolt/errors"

	"clove.run/clove/agent"
)

// step is the step that every error of this package names.
const step = "store"

// errDamaged says that the file's content contradicts itself.
var errDamaged = errors.New("the file is damaged")

// callerPanic is a panic of a caller's own function on its way through the edge, where any
// other panic means a damaged page.
type callerPanic struct{ value any }

// causes lists what can be wrong with the file, each with what to do. The
// first whose test holds is reported; %[1]s is the file.
var causes = []struct {
	is      func(error) bool
	kind    agent.Kind
	message string
	hint    string
}{
	{isAny(errForeign), agent.KindInvalid, "%[1]s is in use by something that is not clove",
		"choose another --root, or move the file away"},
	{isAny(errDamaged, bbolterrors.ErrInvalid, bbolterrors.ErrChecksum, bbolterrors.ErrVersionMismatch, bbolterrors.ErrInvalidMapping),
		agent.KindInternal, "%[1]s cannot be read",
		"put back a copy, or stop all agents and move it away (mv %[1]s %[1]s.damaged): " +
			"the next clove begins a new one, and the records in it are lost"},
	{isAny(syscall.ENOSPC, syscall.EDQUOT), agent.KindInternal, "there is no space left for %[1]s; nothing was changed",
		"free some space (df %[1]s); ended runs can be given up with clove rm"},
	{isAny(fs.ErrPermission), agent.KindPrivilege, "%[1]s may not be opened",
		"run clove as root (sudo), or choose another --root"},
	{isAny(syscall.EROFS), agent.KindInternal, "%[1]s is on a read-only file system",
		"look for disk errors (dmesg), then mount it for writing again"},
}

// isAny returns a test for any of the errors, wherever they are wrapped.
func isAny(targets ...error) func(error) bool {
	return func(err error) bool {
		return slices.ContainsFunc(targets, func(target error) bool { return errors.Is(err, target) })
	}
}

// explain turns err into an *agent.Error with a message and a hint. One that is such an
// error already is returned as it is.
func explain(path string, err error) error {
	var known *agent.Error
	if err == nil || errors.As(err, &known) {
		return err
	}
	for _, cause := range causes {
		if cause.is(err) {
			return &agent.Error{Kind: cause.kind, Step: step, Message: fmt.Sprintf(cause.message, path),
				Hint: fmt.Sprintf(cause.hint, path), Err: err}
		}
	}
	return &agent.Error{Kind: agent.KindInternal, Step: step, Message: "cannot use " + path, Err: err,
		Hint: "see that its file system has space and works (df, dmesg)"}
}

// busy names the process that holds lock, which was not free within waited.
func (d *database) busy(lock string, waited time.Duration) error {
	err := &agent.Error{Kind: agent.KindBusy, Step: step, Err: errBusy,
		Message: fmt.Sprintf("%s is held by another process for more than %s", d.path, waited),
		Hint:    "try again; fuser " + d.path + " names the process"}
	// Not found, it has let go meanwhile, or is in a pid namespace that this process does
	// not see.
	if holder, found := holderOf(lock); found {
		err.Message = fmt.Sprintf("%s is held by %s for more than %s", d.path, holder, waited)
		err.Hint = fmt.Sprintf(d.format.held, holder.pid)
	}
	return err
}

// newer refuses the file of a later clove: its runs may say things that this
// one would lose.
func newer(path string, found, known int) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: step,
		Message: fmt.Sprintf("%s has schema %d, this clove knows up to %d", path, found, known),
		Hint:    "use the newer clove that wrote it, or another --root"}
}

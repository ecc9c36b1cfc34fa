package confine

import (
	"os"
	"os/signal"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/packet"
)

// Options are what a program does beside the measures.
type Options struct {
	// Prepare does what still needs rights; nil: nothing does.
	Prepare func() error
	// JournalBytes bounds what the program writes into its journal; 0: it writes nothing.
	JournalBytes uint64
}

// Entered is what a program has when it has no rights left.
type Entered struct {
	Channel *packet.Conn // to the parent
	Number  int          // the channel's descriptor, for Destinations
	// Journal is a file that stays open as long as the process lives, which is how others see
	// that it does; nil: the process ends with its parent.
	Journal *os.File
}

// Enter is the begin of each program that is confined: it reads the user id from the
// program's arguments, takes over the channel to its parent, and takes every right. After an
// error the process must exit.
func Enter(arguments []string, o Options) (e Entered, err error) {
	p, err := parse(arguments)
	if err != nil {
		return e, err
	}
	p.fileBytes = o.JournalBytes
	if o.Prepare != nil {
		if err := o.Prepare(); err != nil {
			return e, err
		}
	}
	// Before the filter, so that Go's poller can still make its descriptors.
	if e.Channel, err = packet.Inherited(os.NewFile(channelFD, "channel")); err != nil {
		return e, err
	}
	if p.journal != 0 {
		if e.Journal, err = keep(p.journal); err != nil {
			return e, err
		}
		// No process reads its stderr when its parent is gone.
		signal.Ignore(unix.SIGPIPE)
	}
	if e.Number, err = findChannel(); err != nil {
		return e, err
	}
	return e, takeRights(p)
}

// keep has a descriptor stay open behind the measure "descriptors".
func keep(fd int) (*os.File, error) {
	kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, FirstFD)
	unix.Close(fd)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(kept), "journal"), nil
}

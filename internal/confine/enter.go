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
	// Peer says that the descriptor behind the channel is a channel to another process.
	Peer bool
	// JournalBytes bounds what the program writes into its journal; 0: it writes nothing.
	JournalBytes uint64
}

// Entered is what a program has when it has no rights left.
type Entered struct {
	Channel *packet.Conn // to the parent
	Number  int          // the channel's descriptor, for Destinations
	// Peer is the channel of Options.Peer, PeerNumber its descriptor.
	Peer       *packet.Conn
	PeerNumber int
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
	if e.Channel, e.Number, err = inherited(channelFD, "channel"); err != nil {
		return e, err
	}
	if o.Peer {
		if e.Peer, e.PeerNumber, err = inherited(FirstFD, "peer"); err != nil {
			return e, err
		}
	}
	if p.journal != 0 {
		if e.Journal, err = keep(p.journal); err != nil {
			return e, err
		}
		// No process reads its stderr when its parent is gone.
		signal.Ignore(unix.SIGPIPE)
	}
	return e, takeRights(p)
}

// keep has a descriptor stay open behind the measure "descriptors".
// inherited takes over a channel, which gets another number.
func inherited(fd int, name string) (c *packet.Conn, number int, err error) {
	if c, err = packet.Inherited(os.NewFile(uintptr(fd), name)); err != nil {
		return nil, 0, err
	}
	raw, err := c.File().SyscallConn()
	if err == nil {
		err = raw.Control(func(fd uintptr) { number = int(fd) })
	}
	return c, number, err
}

func keep(fd int) (*os.File, error) {
	kept, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, FirstFD)
	unix.Close(fd)
	if err != nil {
		return nil, os.NewSyscallError("fcntl", err)
	}
	return os.NewFile(uintptr(kept), "journal"), nil
}

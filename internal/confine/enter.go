package confine

import (
	"os"

	"clove.run/clove/internal/packet"
)

// Enter is the begin of each program that is confined: it reads the user id from the
// program's arguments, takes over the channel to its parent, and takes every right. prepare
// does what still needs rights; nil: nothing does. number is the channel's descriptor, for
// Destinations. After an error the process must exit.
func Enter(arguments []string, prepare func() error) (channel *packet.Conn, number int, err error) {
	uid, err := userID(arguments)
	if err != nil {
		return nil, 0, err
	}
	if prepare != nil {
		if err := prepare(); err != nil {
			return nil, 0, err
		}
	}
	// Before the filter, so that Go's poller can still make its descriptors.
	if channel, err = packet.Inherited(os.NewFile(channelFD, "channel")); err != nil {
		return nil, 0, err
	}
	if number, err = findChannel(); err != nil {
		return nil, 0, err
	}
	return channel, number, takeRights(uid)
}

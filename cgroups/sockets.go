package cgroups

import (
	"fmt"
	"strconv"
)

// socketFile is v1's limit on the buffers of TCP and UDP sockets, which its memory limit
// does not include. It applies to sockets created after it was written. v2 counts buffers
// as memory.
const socketFile = "memory.kmem.tcp.limit_in_bytes"

// CountsSockets reports whether the socket buffers of a group can be limited here.
func (h *Host) CountsSockets() bool {
	if h.mode == ModeV2 {
		return h.Has("memory")
	}
	return h.Has("memory") && exists(h.trees["memory"].mount, socketFile)
}

// LimitSockets limits on v1 what the buffers of TCP and UDP sockets hold. It fails with
// EBUSY if they hold more already. At the limit the kernel drops datagrams and blocks
// senders, but lets each connection have one message (__sk_mem_raise_allocated), so many
// connections can exceed it: SocketBytes shows by how much. On v2 it does nothing.
func (g *Group) LimitSockets(bytes int64) error {
	dir, ok := g.paths["memory"]
	if !ok {
		return nil
	}
	if err := write(dir, socketFile, strconv.FormatInt(bytes, 10)); err != nil {
		return fmt.Errorf("cannot limit socket buffers to %d bytes: %w", bytes, err)
	}
	return nil
}

// SocketBytes returns what those buffers hold now; 0 on v2, which counts them as memory.
func (g *Group) SocketBytes() (int64, error) {
	var f files
	held := f.number(g.paths["memory"], "memory.kmem.tcp.usage_in_bytes")
	if f.err != nil || held == nil {
		return 0, f.err
	}
	return *held, nil
}

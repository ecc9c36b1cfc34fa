package cgroups

import (
	"fmt"
	"strconv"
)

// socketFile is v1's limit of what TCP and UDP sockets hold in their buffers,
// which its memory limit does not count. The kernel counts for sockets that are
// made after it was written. v2 counts buffers as memory.
const socketFile = "memory.kmem.tcp.limit_in_bytes"

// CountsSockets reports whether a group's socket buffers can be held here.
func (h *Host) CountsSockets() bool {
	if h.mode == ModeV2 {
		return h.Has("memory")
	}
	return h.Has("memory") && exists(h.trees["memory"].mount, socketFile)
}

// LimitSockets bounds on v1 what the buffers of TCP and UDP sockets hold; it
// fails with EBUSY where they hold more. The kernel then drops datagrams and holds
// senders up, but each connection gets one message through (__sk_mem_raise_allocated):
// many of them go beyond the limit, as SocketBytes tells. On v2 it does nothing.
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

// SocketBytes is what those buffers hold now; 0 on v2, which counts them as memory.
func (g *Group) SocketBytes() (int64, error) {
	var f files
	held := f.number(g.paths["memory"], "memory.kmem.tcp.usage_in_bytes")
	if f.err != nil || held == nil {
		return 0, f.err
	}
	return *held, nil
}

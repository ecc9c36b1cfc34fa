package rootfs

import (
	"errors"
	"fmt"
	"os"
)

// namespaces are the user namespaces of a plan, by the text of their map. Other threads
// make them while the mounting thread waits for the loop device.
type namespaces map[string]*pendingNamespace

// pendingNamespace is one namespace in the making.
type pendingNamespace struct {
	done chan struct{} // closed after the other two are set
	file *os.File
	err  error
}

// startNamespaces starts one goroutine for each map that the operations need. close waits
// for all of them.
func startNamespaces(cfg Config, operations []operation) namespaces {
	all := namespaces{}
	for _, s := range operations {
		mapped, ok := s.(interface{ idMap() idMap })
		if !ok {
			continue
		}
		m := mapped.idMap()
		if _, known := all[m.String()]; known {
			continue
		}
		pending := &pendingNamespace{done: make(chan struct{})}
		all[m.String()] = pending
		go func() {
			defer close(pending.done)
			pending.file, pending.err = ownedNamespace(m, cfg.HostID+ownerID)
		}()
	}
	return all
}

// get waits for the namespace with the map m.
func (n namespaces) get(m idMap) (*os.File, error) {
	pending := n[m.String()]
	<-pending.done
	return pending.file, pending.err
}

// take is get for a namespace that is needed after the building. close leaves it open; it
// belongs to the caller.
func (n namespaces) take(m idMap) (*os.File, error) {
	file, err := n.get(m)
	n[m.String()].file = nil
	return file, err
}

// close waits for all goroutines and closes the namespaces; the mounts keep their own reference.
func (n namespaces) close() {
	for _, pending := range n {
		<-pending.done
		if pending.file != nil {
			pending.file.Close()
		}
	}
}

// userNamespace returns a user namespace with the map m. Its owner is this thread's
// effective user. The caller holds holderMu.
func userNamespace(m idMap) (namespace *os.File, err error) {
	child, err := startHolder()
	if err != nil {
		return nil, fmt.Errorf("cannot make a user namespace: %w", err)
	}
	defer func() { err = errors.Join(err, child.end()) }()
	// setgroups(2) stays allowed, because the agent's processes need it.
	for _, ids := range []struct {
		file    string
		extents []extent
	}{{"uid_map", m.UID}, {"gid_map", m.GID}} {
		if err := os.WriteFile(child.proc(ids.file), mapText(ids.extents), 0); err != nil {
			return nil, fmt.Errorf("cannot map the ids of a user namespace: %w", err)
		}
	}
	// The descriptor keeps the namespace when the holder is gone.
	namespace, err = os.Open(child.proc("ns/user"))
	if err != nil {
		return nil, fmt.Errorf("cannot hold a user namespace: %w", err)
	}
	return namespace, nil
}

// mapText is the content of a map file, which must be written at once (user_namespaces(7)).
func mapText(extents []extent) []byte {
	var text []byte
	for _, e := range extents {
		text = fmt.Appendf(text, "%d %d %d\n", e.Disk, e.Shown, e.Size)
	}
	return text
}

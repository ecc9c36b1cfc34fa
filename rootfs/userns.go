package rootfs

import (
	"errors"
	"fmt"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// namespaces makes the user namespaces of a plan on other threads, while the
// mounting thread waits for the loop device: each takes a process.
type namespaces map[string]*pendingNamespace

type pendingNamespace struct {
	done chan struct{} // closed when the other two are set
	file *os.File
	err  error
}

// startNamespaces begins with all maps that the steps will ask for.
func startNamespaces(cfg Config, steps []step) namespaces {
	all := namespaces{}
	for _, s := range steps {
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

// take is get for a namespace that outlives the building.
func (n namespaces) take(m idMap) (*os.File, error) {
	file, err := n.get(m)
	n[m.String()].file = nil
	return file, err
}

// close waits for all of them and lets them go; the mounts keep their own.
func (n namespaces) close() {
	for _, pending := range n {
		<-pending.done
		if pending.file != nil {
			pending.file.Close()
		}
	}
}

// userNamespace returns a user namespace with the map m, which belongs to
// whoever this thread's effective user is.
//
// A namespace needs a process to be born in. Ours is stopped by ptrace at its
// exec, before it has run one instruction, and killed once its namespace is
// held open: so the program does not matter, and nothing of it ever runs.
func userNamespace(m idMap) (*os.File, error) {
	process, err := os.StartProcess("/proc/self/exe", []string{"clove-userns"}, &os.ProcAttr{
		Sys: &syscall.SysProcAttr{
			Cloneflags:  unix.CLONE_NEWUSER,
			UidMappings: sysMap(m.UID),
			GidMappings: sysMap(m.GID),
			Ptrace:      true,
			Pdeathsig:   unix.SIGKILL,
			// The agent's processes change their groups in it.
			GidMappingsEnableSetgroups: true,
		},
	})
	if errors.Is(err, unix.EACCES) {
		return nil, fmt.Errorf("cannot make a user namespace: everybody must be allowed to execute clove's program: %w", err)
	}
	if err != nil {
		return nil, fmt.Errorf("cannot make a user namespace: %w", err)
	}
	defer process.Wait()
	defer process.Kill()
	namespace, err := os.Open(fmt.Sprintf("/proc/%d/ns/user", process.Pid))
	if err != nil {
		return nil, fmt.Errorf("cannot hold a user namespace: %w", err)
	}
	return namespace, nil
}

func sysMap(extents []extent) []syscall.SysProcIDMap {
	mapped := make([]syscall.SysProcIDMap, len(extents))
	for i, e := range extents {
		mapped[i] = syscall.SysProcIDMap{ContainerID: int(e.Disk), HostID: int(e.Shown), Size: int(e.Size)}
	}
	return mapped
}

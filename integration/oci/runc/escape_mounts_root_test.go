//go:build root

package runc

import (
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// points is how many mounts one run makes in the folder that is exchanged.
const points = 6

// swapped has a volume in which x is alternately a folder and a link to the victim.
func swapped(s *site) (stop func()) {
	_ = os.RemoveAll(s.path("volume"))
	s.mkdir("volume/x")
	s.link(s.path("victim"), "volume/link")
	return s.swap("volume", "x", "link")
}

// TestCVE_2021_30465: a mount's destination is checked, and then mounted on by name. If it
// becomes a link in between, the mount lies outside of the container's root. The mount's
// source shows that: the victim itself is a mount point at the end.
func TestCVE_2021_30465(t *testing.T) {
	newArena(t).run(until2021, escape{control: raceControl, tries: raceTries, attack: func(s *site) bool {
		stop := swapped(s)
		defer stop()
		s.mkdir("payload")
		s.write("payload/mark", "x")
		b, args := plain(s), []string{"/probe", "read"}
		bind(b, "/vol")
		for i := range points {
			s.mkdir(fmt.Sprintf("victim/p%d", i))
			b.mount(fmt.Sprintf("/vol/x/p%d", i), "bind", s.path("payload"), "bind")
			args = append(args, fmt.Sprintf("/seen/p%d/mark", i))
		}
		b.mount("/seen", "bind", s.path("victim"), "rbind")
		b.process().Args = args
		b.save()
		return strings.Contains(s.run().out, `"ok":true`)
	}})
}

// TestCVE_2024_45310: the mount itself is safe by then, but the folder for it is made by name,
// with root's rights, wherever the link leads.
func TestCVE_2024_45310(t *testing.T) {
	newArena(t).run(until2023, escape{control: raceControl, tries: raceTries, attack: func(s *site) bool {
		stop := swapped(s)
		defer stop()
		b := plain(s, "ids")
		bind(b, "/vol")
		for i := range points {
			b.mount(fmt.Sprintf("/vol/x/p%d", i), "bind", s.path("victim/secret"), "bind")
		}
		b.save()
		s.run()
		made := s.names("victim")
		for _, name := range made {
			_ = os.Remove(filepath.Join(s.path("victim"), name))
		}
		return len(made) > 0
	}})
}

// TestCVE_2025_52565: /dev/console is a bind mount of the terminal's name in the container,
// and is made before /proc becomes read-only. The name is exchanged with a link to a file of
// /proc; at the next check it is the terminal again.
func TestCVE_2025_52565(t *testing.T) {
	newArena(t).run(until2023, escape{control: raceControl, tries: raceTries, attack: func(s *site) bool {
		_ = os.RemoveAll(s.path("rootfs/dev"))
		s.mkdir("rootfs/dev/pts")
		s.link("/terminals/ptmx", "rootfs/dev/pts/ptmx")
		s.link("/terminals/0", "rootfs/dev/pts/0")
		s.link(domain, "rootfs/dev/pts/x")
		stop := s.swap("rootfs/dev/pts", "0", "x")
		defer stop()
		b := plain(s, "ids")
		devpts := b.Mounts[2]
		for _, destination := range []string{"/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"} {
			b.unmount(destination)
		}
		devpts.Destination = "/terminals"
		b.Mounts = append(b.Mounts, devpts)
		b.process().Terminal = true
		b.save()
		return s.consoleIsWritableFile()
	}})
}

// consoleIsWritableFile makes a container with a terminal and checks what its /dev/console is,
// before anything of it runs.
func (s *site) consoleIsWritableFile() bool {
	s.t.Helper()
	// The terminal waits in the socket until that is closed.
	socket, err := net.Listen("unix", s.path("console"))
	if err != nil {
		s.t.Fatal(err)
	}
	defer socket.Close()
	inside, done := s.created("--console-socket", s.path("console"))
	defer done()
	if inside == "" {
		return false
	}
	console := filepath.Join(inside, "dev/console")
	info, err := os.Stat(console)
	if err != nil {
		s.t.Fatal(err)
	}
	var mount unix.Statfs_t
	if err := unix.Statfs(console, &mount); err != nil {
		s.t.Fatal(err)
	}
	return info.Mode().IsRegular() && mount.Type == unix.PROC_SUPER_MAGIC && mount.Flags&unix.ST_RDONLY == 0
}

// created makes a container and returns the host's path into it, before anything of it runs;
// "" if it was refused.
func (s *site) created(flags ...string) (inside string, done func()) {
	s.t.Helper()
	args := append([]string{"create", "--pid-file", s.path("pid")}, flags...)
	if got := s.call(append(args, s.id)...); got.status == 0 {
		inside = filepath.Join("/proc", s.read("pid"), "root")
	}
	return inside, func() { s.call("delete", "--force", s.id) }
}

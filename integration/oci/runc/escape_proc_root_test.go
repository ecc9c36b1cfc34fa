//go:build root

package runc

import (
	"fmt"
	"os"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"
)

// relink makes name a link to target, and replaces an existing one.
func (s *site) relink(target, name string) {
	s.t.Helper()
	_ = os.RemoveAll(s.path(name))
	s.link(target, name)
}

// moment is a hook that stands for another container with the same folder: it exchanges the
// link after the mounts and before the masks are made.
func moment(b *bundle, target, name string) {
	addHook(b, "createRuntime", specs.Hook{Path: "/bin/ln", Args: []string{"ln", "-sfn", target, b.site.path(name)}})
}

// twoProcs gives the image a mount point for the real /proc, and a folder that only looks like
// /proc.
func twoProcs(s *site) {
	s.mkdir("rootfs/real")
	s.mkdir("rootfs/fake/sys")
	_ = os.Symlink("/real/self", s.path("rootfs/fake/self")) // what the runtime itself reads there
}

// TestCVE_2019_19921: the image's /proc leads through a volume. If the volume changes at the
// right moment, the masks are mounted over something else.
func TestCVE_2019_19921(t *testing.T) {
	newArena(t).run(until2023, escape{attack: func(s *site) bool {
		twoProcs(s)
		s.relink("/vol/proc", "rootfs/proc")
		s.relink("/real", "volume/proc")
		b := plain(s, put("/real"+domain[len("/proc"):])...)
		proc := b.Mounts[0]
		b.unmount("/proc")
		bind(b, "/vol")
		b.Mounts = append(b.Mounts, proc)
		moment(b, "/fake", "volume/proc")
		b.save()
		s.run()
		return wrote(s)
	}})
}

// TestCVE_2023_27561: the same with a /proc that is a link in the image itself.
func TestCVE_2023_27561(t *testing.T) {
	newArena(t).run(until2023, escape{attack: func(s *site) bool {
		twoProcs(s)
		s.relink("/real", "rootfs/proc")
		b := plain(s, put("/real"+domain[len("/proc"):])...)
		moment(b, "/fake", "rootfs/proc")
		b.save()
		s.run()
		return wrote(s)
	}})
}

// TestMasksHoldOtherwise is another control of both tests: without the attack, the same write
// fails under the same old version.
func TestMasksHoldOtherwise(t *testing.T) {
	a := newArena(t)
	for i, r := range []runtime{vulnerable(t, until2023), tested(t)} {
		s := a.site(r, fmt.Sprint("plain", i))
		plain(s, put(domain)...).save()
		if got := s.run(); got.status != 0 || wrote(s) {
			t.Errorf("%s: %+v, %s", r.program, got, s.read("rootfs/out"))
		}
	}
}

// TestCVE_2025_31133: masks are bind mounts of the image's /dev/null. If that is a link to a
// file that must be masked, the file stays visible.
func TestCVE_2025_31133(t *testing.T) {
	const masked = "proc/timer_list"
	read := func(s *site, null string) (text string, made bool) {
		_ = os.RemoveAll(s.path("rootfs/dev"))
		s.mkdir("rootfs/dev")
		if null != "" {
			s.link(null, "rootfs/dev/null")
		}
		b := plain(s, "ids")
		for _, destination := range []string{"/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"} {
			b.unmount(destination)
		}
		b.save()
		inside, done := s.created()
		defer done()
		if inside == "" {
			return "", false
		}
		seen, err := os.ReadFile(inside + "/" + masked)
		if err != nil {
			t.Fatal(err)
		}
		return string(seen), true
	}
	a := newArena(t)
	a.run(until2023, escape{attack: func(s *site) bool {
		text, _ := read(s, "/"+masked)
		return text != ""
	}})
	// Without the link the mask is in force, under both.
	for i, r := range []runtime{vulnerable(t, until2023), tested(t)} {
		if text, made := read(a.site(r, fmt.Sprint("plain", i)), ""); text != "" || !made {
			t.Errorf("%s: made %t, and the file shows %q", r.program, made, text)
		}
	}
}

// TestCVE_2025_52881: writes of a runtime below /proc go to the file that is mounted there. Here
// that is the image's own folder, and a volume's file behind a link. (Labels of AppArmor and
// SELinux are written in the same way; this host's kernel may have neither.)
func TestCVE_2025_52881(t *testing.T) {
	newArena(t).run(until2023, escape{attack: func(s *site) bool {
		s.mkdir("rootfs/proc/sys/kernel")
		s.relink("/vol/secret", "rootfs"+domain)
		b := plain(s, "ids")
		b.unmount("/proc")
		b.mount("/vol", "bind", s.path("victim"), "rbind")
		b.linux().Sysctl = map[string]string{"kernel.domainname": "attacked"}
		b.save()
		s.run()
		return s.read("victim/secret") != "the host's"
	}})
}

// TestCVE_2026_41579: the image's /dev is a link out of the image, and what runtimes make in
// /dev is made there.
func TestCVE_2026_41579(t *testing.T) {
	newArena(t).run(until2023, escape{attack: func(s *site) bool {
		s.relink(s.path("victim"), "rootfs/dev")
		b := plain(s, "ids")
		for _, destination := range []string{"/dev", "/dev/pts", "/dev/shm", "/dev/mqueue"} {
			b.unmount(destination)
		}
		b.save()
		s.run()
		return len(s.names("victim")) > 0
	}})
}

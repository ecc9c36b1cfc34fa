//go:build root

package runtime

import (
	"archive/tar"
	"context"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
)

// writesEverywhere prints for each place whether a file can be made in it.
const writesEverywhere = `for p in /workspace /tmp /var/tmp /home/agent /dev/shm; do
	if m=$(touch $p/new 2>&1); then echo $p written; rm $p/new; else echo $p ${m##*: }; fi; done`

// TestPlacesThatStayWritable: each place is written without a list, and with a list only those
// in it.
func TestPlacesThatStayWritable(t *testing.T) {
	lists := [][]string{nil, {"/tmp", "/dev/shm"}}
	for _, place := range agent.WritablePlaces {
		lists = append(lists, []string{place})
	}
	for _, user := range []agent.User{policies.AgentUser, policies.RootUser} {
		for _, list := range lists {
			a := startLive(t, writesEverywhere, func(s *agent.Spec) { s.User, s.Files.ReadOnly, s.Files.Writable = user, true, list })
			want := ""
			for _, place := range agent.WritablePlaces {
				if list == nil || slices.Contains(list, place) {
					want += place + " written\n"
				} else {
					want += place + " Read-only file system\n"
				}
			}
			if got := a.saysAll(); got != want {
				t.Errorf("%s, %q:\n%swant\n%s", user.Name, list, got, want)
			}
			a.ends()
		}
	}
}

// mountedWritable lists the writable mounts, without those of the kernel's own files and of
// devices.
const mountedWritable = `while read dev dir kind options rest; do case $dir in /proc|/proc/*|/sys|/sys/*) continue;; esac
	case $options in rw*) [ -c $dir ] || echo $dir;; esac; done </proc/self/mounts`

// TestNothingElseIsMountedWritable: /dev/pts has terminals and no files.
func TestNothingElseIsMountedWritable(t *testing.T) {
	for _, row := range []struct {
		list []string
		want []string
	}{
		{nil, []string{"/dev", "/dev/mqueue", "/dev/pts", "/dev/shm", "/home/agent", "/tmp", "/var/tmp", "/workspace"}},
		{[]string{"/tmp"}, []string{"/dev/pts", "/tmp"}},
		{[]string{"/dev/shm"}, []string{"/dev/pts", "/dev/shm"}},
	} {
		a := startLive(t, mountedWritable, func(s *agent.Spec) { s.Files.ReadOnly, s.Files.Writable = true, row.list })
		got := strings.Fields(a.saysAll())
		slices.Sort(got)
		if !slices.Equal(got, row.want) {
			t.Errorf("%q: %q, want %q", row.list, got, row.want)
		}
		a.ends()
	}
}

// waysToWrite are ways around a place that is closed. Each line that the control prints with
// "done" must fail where only /tmp is writable.
const waysToWrite = `try() { n=$1; shift; if m=$("$@" 2>&1); then echo "$n: done"; else echo "$n: ${m##*: }"; fi; }
cd /workspace
try append sh -c 'echo x >>old'
try truncate truncate -s 1 old
try mode chmod 640 old
try time touch old
try rename mv old older
try remove rm gone
try link ln kept linked
try descriptor sh -c 'exec 3<kept; echo x >/proc/self/fd/3'
try dev sh -c 'exec 3<kept; echo x >>/dev/fd/3'
try folder sh -c 'exec 3<.; echo x >/proc/self/fd/3/byfolder'
try root sh -c 'echo x >/proc/self/root/workspace/byroot'
try cwd sh -c 'echo x >/proc/self/cwd/bycwd'
ln -s /workspace/bylink /tmp/link
try symlink sh -c 'echo x >/tmp/link'
cp /usr/bin/touch /tmp/touch && chmod 4755 /tmp/touch
try setid /tmp/touch bysetid
try fifo mkfifo pipe
try device touch /dev/mqueue/new`

// TestNoWayAroundAClosedPlace: the control is a read-only root without a list, in which each
// way writes. A hard link from the workspace into /tmp fails in both, because they are two
// mounts.
func TestNoWayAroundAClosedPlace(t *testing.T) {
	for name, list := range map[string][]string{"done": nil, "Read-only file system": {"/tmp"}} {
		dir, err := os.MkdirTemp("/var/tmp", "clove-test-")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
		for _, file := range []string{"old", "gone", "kept"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte("text"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		a := startLive(t, waysToWrite, func(s *agent.Spec) {
			s.Files.ReadOnly, s.Files.Writable, s.Files.Workspace = true, list, dir
		})
		lines := strings.Split(strings.TrimSuffix(a.saysAll(), "\n"), "\n")
		if want := strings.Count(waysToWrite, "\ntry "); len(lines) != want {
			t.Errorf("%q: %d lines, want %d", lines, len(lines), want)
		}
		for _, line := range lines {
			if !strings.HasSuffix(line, ": "+name) {
				t.Errorf("%s, want %s", line, name)
			}
		}
		a.ends()
	}
}

// TestRootInsideWritesNoFileOfDev: /dev belongs to root of the sandbox. Its devices stay
// writable.
func TestRootInsideWritesNoFileOfDev(t *testing.T) {
	for want, list := range map[string][]string{"done\nnull\n": nil, "Read-only file system\nnull\n": {"/tmp"}} {
		a := startLive(t, `if m=$(touch /dev/new 2>&1); then echo done; else echo "${m##*: }"; fi; echo x >/dev/null && echo null`,
			func(s *agent.Spec) { s.User, s.Files.ReadOnly, s.Files.Writable = policies.RootUser, true, list })
		if got := a.saysAll(); got != want {
			t.Errorf("%q: %q, want %q", list, got, want)
		}
		a.ends()
	}
}

// TestExecAndCopyWriteWhereTheAgentMay: a session and a copy meet the same mounts.
func TestExecAndCopyWriteWhereTheAgentMay(t *testing.T) {
	a := startLive(t, "echo ready; exec sleep 1000", func(s *agent.Spec) { s.Files.ReadOnly, s.Files.Writable = true, []string{"/tmp"} })
	a.line()
	r := a.exec(agent.Exec{Command: []string{"sh", "-c", writesEverywhere}}, "")
	if want := "/workspace Read-only file system\n/tmp written\n"; r.err != nil || !strings.HasPrefix(r.stdout, want) || strings.Count(r.stdout, "written") != 1 {
		t.Errorf("%v, %q", r.err, r.stdout)
	}
	made := entry{tar.Header{Name: "x", Typeflag: tar.TypeReg}, "text"}
	for _, place := range agent.WritablePlaces {
		err := a.CopyIn(context.Background(), place, archive(t, made))
		if place == "/tmp" {
			if err != nil {
				t.Errorf("control: %v", err)
			}
			continue
		}
		if !errors.Is(err, unix.EROFS) || agent.KindOf(err) != agent.KindPrivilege || agent.FailureOf(err).Hint == "" {
			t.Errorf("%s: %v", place, err)
		}
	}
	if got := a.shell("cat /tmp/x"); got != "text" {
		t.Errorf("%q", got)
	}
}

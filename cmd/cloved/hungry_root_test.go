//go:build root

package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/internal/testhost"
)

// hungryPeakBytes is the most memory that cloved may have used: its own, the user's 48 runs (4
// MiB), the 64 MiB for a user's calls, and as much again for copies and Go's collector. It was
// 75 MiB.
const hungryPeakBytes = 256 << 20

// A member with very large runs requests lists on many connections and reads no answer:
// cloved's memory stays bounded, and root still gets a complete list. The control, without the
// bounds, is TestUnreadAnswersAreBounded in package daemon.
func TestUnreadListsLeaveClovedAlive(t *testing.T) {
	const group, runs, connections, requests = "nogroup", 48, 40, 8
	s := serveOne(t, "group: "+group+"\n", nil)
	s.hears("READY=1")
	for _, dir := range []string{s.dir, filepath.Dir(s.dir)} { // so that a member can reach the socket
		if err := os.Chmod(dir, 0o711); err != nil {
			t.Fatal(err)
		}
	}
	member := memberThread(t, hungryUID, 65534)
	defer member.Close()
	dial := func() *rpc.Conn {
		var conn *rpc.Conn
		if err := member.Do(func() (err error) {
			conn, err = rpc.Dial(context.Background(), s.path("run/clove.sock"))
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if err := conn.SetDeadline(time.Now().Add(testhost.Patience(2 * time.Minute))); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { conn.Close() })
		return conn
	}
	starter := dial()
	for i := range runs {
		if err := starter.Request(methods.RunStart.Name, largeRun(i)); err != nil {
			t.Fatal(err)
		}
		if m, err := starter.Receive(); err != nil || m.Error != nil {
			t.Fatalf("run %d: %v %s", i, err, m.Error)
		}
	}
	ask := bytes.Repeat([]byte(`{"jsonrpc":"2.0","id":0,"method":"run.list"}`+"\n"), requests)
	for i := range requests {
		ask = bytes.Replace(ask, []byte(`"id":0`), fmt.Appendf(nil, `"id":%d`, i+1), 1)
	}
	var silent []*rpc.Conn
	for range connections {
		c := dial()
		if _, err := c.Write(ask); err != nil {
			t.Fatal(err)
		}
		silent = append(silent, c)
	}
	for _, c := range silent { // each is being answered now
		if _, err := c.Read(make([]byte, 1)); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{{"ps", "-q"}, {"ps", "--json"}} {
		out, err := s.clove(args...)
		if err != nil || strings.Count(out, "large-")+strings.Count(out, "\n") < runs || args[1] == "--json" && !strings.Contains(out, strconv.Itoa(hungryUID)) {
			t.Errorf("root's clove %v: %v, %d bytes", args, err, len(out))
		}
	}
	peak := s.peakBytes()
	t.Logf("cloved used at most %d MiB", peak>>20)
	if peak > hungryPeakBytes {
		t.Errorf("cloved used %d MiB", peak>>20)
	}
}

const hungryUID = 64004

// memberThread starts a thread whose connections are a user's: the kernel reports the
// effective ids.
func memberThread(t *testing.T, uid, group uint32) *nsthread.Thread {
	t.Helper()
	thread, err := nsthread.Start(0)
	if err == nil {
		err = thread.Do(func() error {
			const same = ^uintptr(0)
			_, _, errno := unix.RawSyscall(unix.SYS_SETRESGID, same, uintptr(group), same)
			if errno == 0 {
				_, _, errno = unix.RawSyscall(unix.SYS_SETRESUID, same, uintptr(uid), same)
			}
			if errno != 0 {
				return errno
			}
			return nil
		})
	}
	if err != nil {
		t.Fatal(err)
	}
	return thread
}

// largeRun returns a run with about as much text as a member's run may have, which stays in
// the queue.
func largeRun(i int) api.StartParams {
	return api.StartParams{DelayNS: int64(time.Hour), Spec: agent.Spec{Name: fmt.Sprintf("large-%d", i), Command: []string{"true", strings.Repeat("x", 80<<10)}, // lists have no environment
		Network: agent.NetworkNone, Seccomp: agent.Seccomp{Profile: "standard"},
		Limits: agent.Limits{MemoryBytes: 64 << 20, MemorySwapBytes: 64 << 20, Pids: 64, DiskBytes: 64 << 20, ShmBytes: 1 << 20,
			Rlimits: []agent.Rlimit{{Name: "nofile", Soft: 64, Hard: 64}}}}}
}

// clove runs a command of root's with this cloved.
func (s *served) clove(args ...string) (string, error) {
	cmd := exec.Command(testhost.Binary(s.t, "clove"), args...)
	cmd.Env = append(os.Environ(), "CLOVE_ROOT="+s.path("state"), "CLOVE_RUN_DIR="+s.path("run"))
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("%w: %s", err, stderr.String())
	}
	return string(out), err
}

// peakBytes is the most memory that cloved has used.
func (s *served) peakBytes() int64 {
	s.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		s.t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "VmHWM:")
	kib, err := strconv.ParseInt(strings.Fields(rest)[0], 10, 64)
	if err != nil {
		s.t.Fatal(err)
	}
	return kib << 10
}

//go:build root

package integration

import (
	"bytes"
	"context"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// member returns a host whose commands a member of the group runs, with this cloved.
func (d *cloved) member() *host {
	m := *d.host
	m.user = &syscall.Credential{Uid: memberUID, Gid: memberUID, Groups: []uint32{groupID}}
	return &m
}

// A member's foreground run behaves like root's: the same tests, through cloved.
func TestForegroundOfAMember(t *testing.T) {
	for name, does := range map[string]func(*testing.T, *host){
		"every ending": everyEnding, "signals": signalsReachTheAgent, "third interrupt": theThirdInterruptKills, "a TERM begins the grace": aTermBeginsTheGrace, "stopped": stoppedTogether,
		"streams": streamsPassThrough, "input": inputEndsWhenTheUserEndsIt, "closed streams": theAgentMayCloseItsStreams,
		"reader that leaves": aReaderThatLeavesEndsTheAgent, "late reader": aLateReaderGetsEverything, "stuck reader": aStuckReaderHoldsNothingUp,
		"terminal": aRealTerminal, "no terminal": withoutTheFlagThereIsNoTerminal, "interrupt key": theInterruptKeyHitsTheForegroundInside,
		"jobs": anInteractiveShellHasJobs, "end of file key": theEndOfFileKeyEndsAShell, "closed window": aClosedWindowEndsTheAgent,
		"terminal restored": theTerminalIsRestoredWhateverTheEnd,
	} {
		t.Run(name, func(t *testing.T) { does(t, newClovedFor(t, groupName).member()) })
	}
}

// All output of an agent that ends at once, and much of it, arrives. With --rm nothing is
// left; without, the run is stored and can be started again, detached.
func TestForegroundOfAMemberLosesNothing(t *testing.T) {
	d := newClovedFor(t, groupName)
	m := d.member()
	for range 20 {
		m.agent(nil, "echo", "all").want(t, agent.StatusExited, 0, "all\n")
	}
	if r := m.agent(nil, "head", "-c", "20M", "/dev/zero"); len(r.stdout) != 20<<20 {
		t.Errorf("%d bytes, %s", len(r.stdout), r.stderr)
	}
	if r := m.clove("ps", "-a", "-q"); r.stdout != "" {
		t.Errorf("left: %s", r.stdout)
	}
	dir := userDir(t, map[string]string{"agent.py": "import sys\nprint('hello', sys.stdin.read())\nsys.exit(3)\n"})
	r := m.cloveWith("you", "run", "--name", "kept", filepath.Join(dir, "agent.py"))
	if r.stdout != "hello you\n" || r.code != 3 {
		t.Errorf("%d, %q, %s", r.code, r.stdout, r.stderr)
	}
	if r := m.clove("restart", "kept"); r.code != 0 {
		t.Errorf("%s", r.stderr)
	}
	if r := m.clove("wait", "kept"); r.code != 3 { // without waiting for input
		t.Errorf("%d, %s", r.code, r.stderr)
	}
	if r := m.clove("logs", "kept"); !strings.HasSuffix(r.stdout, "hello \n") {
		t.Errorf("%q", r.stdout)
	}
}

// The run ends with the program in whose foreground it is, and no other client can attach.
func TestForegroundOfAMemberEndsWithIt(t *testing.T) {
	d := newClovedFor(t, groupName)
	m := d.member()
	life := newLifeline(t)
	r := m.start([]string{"--name", "front", life.flag()}, "sh", "-c", holdLifeline+"trap '' TERM HUP; echo ready; while :; do echo beat >&9; sleep 0.02; done")
	if line := r.line(); line != "ready" {
		t.Fatal(line)
	}
	c, ctx := d.connect()
	s, err := c.Foreground(ctx, api.AttachParams{RunParams: api.RunParams{Run: members("front")}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Answer(ctx, nil, nil); agent.KindOf(err) != agent.KindConflict {
		t.Errorf("a second one: %v", err)
	}
	s.Close()
	life.beats() // its end did not end the agent
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	r.cmd.Wait()
	life.gone(atOnce)
}

// A run whose program dies between the start and its session does not stay.
func TestForegroundOfAMemberThatNeverComes(t *testing.T) {
	d := newClovedFor(t, groupName)
	line := `{"jsonrpc":"2.0","id":1,"method":"run.start","params":{"spec":{"name":"raw","foreground":true,"command":["/bin/sleep","1000"],"dir":"/","user":{"name":"agent","uid":1000,"gid":1000,"home":"/"},"network":"none","egress":{"limits":{"connections":1,"per_second":1}},"limits":{"memory_bytes":67108864,"memory_swap_bytes":67108864,"pids":64,"stop_grace_ns":1,"disk_bytes":67108864,"shm_bytes":1048576,"rlimits":[{"name":"nofile","soft":64,"hard":64}]},"files":{},"seccomp":{"profile":"standard"},"policy":{"name":"standard","sha256":""}}}}` + "\n"
	if answer := d.raw(memberUID, line); !strings.Contains(answer, `"state":"running"`) {
		t.Fatal(answer)
	}
	c, ctx := d.connect()
	result, err := client.Do(ctx, c, methods.RunWait, api.RunParams{Run: members("raw")})
	if err != nil || result.Record.Status != agent.StatusKilled {
		t.Errorf("%+v, %v", result.Record, err)
	}
}

// cloved ends, by TERM or KILL, and comes back: the agent and its program are not affected.
func TestForegroundOfAMemberNeedsNoCloved(t *testing.T) {
	d := newClovedFor(t, groupName)
	for _, end := range []unix.Signal{unix.SIGTERM, unix.SIGKILL} {
		r := d.member().start(nil, "sh", "-c", `trap 'echo got TERM; exit 5' TERM; while read x; do echo "got $x"; done`)
		io.WriteString(r.stdin, "one\n")
		if line := r.line(); line != "got one" {
			t.Fatal(line)
		}
		d.stop(end)
		io.WriteString(r.stdin, "two\n")
		if line := r.line(); line != "got two" {
			t.Fatal(line)
		}
		if end == unix.SIGTERM {
			r.cmd.Process.Signal(unix.SIGTERM)
			if line := r.line(); line != "got TERM" {
				t.Error(line)
			}
			r.wait().want(t, agent.StatusExited, 5, "")
		}
		d.serve()
		if end == unix.SIGKILL {
			io.WriteString(r.stdin, "three\n")
			r.wait().want(t, agent.StatusExited, 0, "got three\n")
		}
	}
}

// A signal does not wait behind input that the agent does not read.
func TestForegroundOfAMemberSignalBehindInput(t *testing.T) {
	r := newClovedFor(t, groupName).member().start(nil, "perl", "-e", "$| = 1; print qq(ready\n); sleep 1000")
	go io.Copy(r.stdin, bytes.NewReader(make([]byte, 4<<20))) // returns when the pipe is closed
	r.send(unix.SIGTERM)
	r.wait().want(t, agent.StatusSignaled, agent.ExitSignalBase+int(unix.SIGTERM), "")
}

// A run can be stopped although its program reads no output; the control is the time before
// the stop.
func TestForegroundOfAMemberStoppedByRoot(t *testing.T) {
	d := newClovedFor(t, groupName)
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := d.member().command(ctx, "run", "--name", "stuck", "--", "yes")
	cmd.Stdout = write
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	write.Close()
	if _, err := io.ReadFull(read, make([]byte, 2)); err != nil {
		t.Fatal(err)
	}
	if exits(t, cmd.Process.Pid, time.Second) {
		t.Error("it did not wait for its reader")
	}
	d.ok("stop", "-t", "1s", members("stuck"))
	go io.Copy(io.Discard, read)
	cmd.Wait()
	if state := d.inspect(members("stuck")); state.Record == nil || state.Record.Stopped == nil {
		t.Errorf("%+v", state.Record)
	}
}

// Without cloved, outside of the group, and with options for root only: each is refused with
// one line.
func TestForegroundOfAMemberRefused(t *testing.T) {
	d := newClovedFor(t, groupName)
	refused := func(m *host, want string, flags ...string) {
		t.Helper()
		r := m.clove(append(append([]string{"run"}, flags...), "--", "true")...)
		if r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, want) {
			t.Errorf("%v: %d, %s, want %q", flags, r.code, r.stderr, want)
		}
	}
	m := d.member()
	refused(m, "only root may use", "--network", "host")
	refused(m, "only root may use it", "--debug")
	refused(m, "ermission denied", "--workspace", "/root/x")
	d.ok("drain")
	refused(m, "would have to wait")
	d.ok("drain", "--undo")
	if r := m.clove("ps", "-a", "-q"); r.stdout != "" {
		t.Errorf("left: %s", r.stdout)
	}
	stranger := *m
	stranger.user = &syscall.Credential{Uid: strangerUID, Gid: strangerUID}
	refused(&stranger, "you may not use cloved")
	d.stop(unix.SIGTERM)
	refused(m, "does not run")
	d.serve()
	m.agent([]string{"--name", "again"}, "echo", "hello").want(t, agent.StatusExited, 0, "hello\n")
}

package main

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/initproto"
)

// secondStageSays plays the second stage and returns PID 1's result.
func secondStageSays(t *testing.T, say func(*initproto.Conn, *initproto.Orders)) launchOutcome {
	t.Helper()
	conn, inherited, err := initproto.Pair()
	if err != nil {
		t.Fatal(err)
	}
	fd, err := unix.Dup(int(inherited.Fd()))
	if err != nil {
		t.Fatal(err)
	}
	inherited.Close()
	peer, err := initproto.NewConn(fd)
	if err != nil {
		t.Fatal(err)
	}
	agent := &agentProcess{conn: conn, launched: make(chan launchOutcome, 1)}
	if err := agent.order(&initproto.Orders{Dir: "/the/orders"}); err != nil {
		t.Fatal(err)
	}
	m, err := peer.Receive()
	if err != nil || m.Orders == nil {
		t.Fatalf("no orders came: %+v, %v", m, err)
	}
	if _, err := peer.Receive(); err != io.EOF {
		t.Errorf("the word to go is %v", err)
	}
	say(peer, m.Orders)
	peer.Close()
	return <-agent.launched
}

func TestFollow(t *testing.T) {
	started := initproto.Message{Started: &initproto.Started{BootTimeNS: 7}}
	failed := initproto.Message{ExecFailed: &initproto.ExecFailed{Step: "chdir", ExitCode: 125}}
	send := func(messages ...initproto.Message) func(*initproto.Conn, *initproto.Orders) {
		return func(c *initproto.Conn, o *initproto.Orders) {
			if o.Dir != "/the/orders" {
				t.Errorf("orders are %+v", o)
			}
			for _, m := range messages {
				if err := c.Send(m); err != nil {
					t.Error(err)
				}
			}
		}
	}
	for name, c := range map[string]struct {
		say  func(*initproto.Conn, *initproto.Orders)
		boot int64
		step string // of the failure; empty: the agent was executed
	}{
		"executes":            {send(started), 7, ""},
		"fails":               {send(failed), 0, "chdir"},
		"fails at the last":   {send(started, failed), 7, "chdir"},
		"dies":                {send(), 0, "prepare"},
		"says something else": {send(initproto.Message{Stop: &initproto.Stop{}}), 0, "prepare"},
		"says it in the end":  {send(started, initproto.Message{Stop: &initproto.Stop{}}), 7, "prepare"},
	} {
		got := secondStageSays(t, c.say)
		step := ""
		if got.failure != nil {
			step = got.failure.Step
		}
		if got.bootTimeNS != c.boot || step != c.step {
			t.Errorf("%s: started %d, failure %+v", name, got.bootTimeNS, got.failure)
		}
	}
}

func TestStartFailedKeepsTheErrno(t *testing.T) {
	got := startFailed("uid", &os.SyscallError{Syscall: "setresuid", Err: unix.EPERM})
	if got.Errno != unix.EPERM || got.ExitCode != initproto.ExitStartFailed || got.Error() != "uid: setresuid: operation not permitted" {
		t.Errorf("got %+v", got)
	}
	if got := startFailed("orders", errors.New("no")); got.Errno != 0 {
		t.Errorf("got %+v", got)
	}
}

// TestLast: the message that ends the run names the first cause. It names a failed start only
// if the end had not been requested.
func TestLast(t *testing.T) {
	const killed, status3 = unix.WaitStatus(9), unix.WaitStatus(3 << 8)
	failure := &initproto.ExecFailed{Step: "execve"}
	for name, c := range map[string]struct {
		box  sandbox
		want string
	}{
		"by itself":       {sandbox{started: true, end: ending{status3, 50}, killedNS: 60}, `{"exited":{"code":3,"wall_ns":40,"executed_ns":50}}`},
		"by a signal":     {sandbox{started: true, end: ending{killed, 50}, killedNS: 50}, `{"exited":{"code":-1,"signal":9,"wall_ns":40,"executed_ns":40}}`},
		"at the deadline": {sandbox{started: true, cause: "deadline", end: ending{killed, 50}, killedNS: 30}, `{"exited":{"code":-1,"signal":9,"cause":"deadline","wall_ns":40,"executed_ns":20}}`},
		"failed":          {sandbox{failure: failure, end: ending{status3, 50}}, `{"exec_failed":{"step":"execve","errno":0,"message":"","exit_code":0}}`},
		"stopped before":  {sandbox{failure: failure, cause: "stop", end: ending{killed, 50}}, `{"exited":{"code":-1,"signal":9,"cause":"stop","wall_ns":0,"executed_ns":0}}`},
		"clock went back": {sandbox{started: true, end: ending{status3, 5}, killedNS: 6}, `{"exited":{"code":3,"wall_ns":0,"executed_ns":0}}`},
	} {
		c.box.agent, c.box.children = &agentProcess{startedNS: 10}, &reaper{}
		got, err := initproto.Encode(c.box.last(nil))
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %s, %v; want %s", name, got, err, c.want)
		}
	}
}

func TestTheFirstCauseStays(t *testing.T) {
	box := &sandbox{}
	box.blame(initproto.CauseStop)
	box.blame(initproto.CauseDeadline)
	if box.cause != initproto.CauseStop {
		t.Errorf("cause %q", box.cause)
	}
	box = &sandbox{end: ending{bootTimeNS: 1}}
	box.blame(initproto.CauseLifeline)
	if box.cause != initproto.CauseSelf {
		t.Errorf("cause %q of an agent that had ended before", box.cause)
	}
}

// TestASignalWaitsForTheAgent: the second stage would not handle it.
func TestASignalWaitsForTheAgent(t *testing.T) {
	conn, inherited, err := initproto.Pair()
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	defer inherited.Close()
	process := exec.Command("sleep", "1000")
	if err := process.Start(); err != nil {
		t.Fatal(err)
	}
	defer process.Process.Kill()
	box := &sandbox{agent: &agentProcess{pid: process.Process.Pid, launched: make(chan launchOutcome)}}
	box.onCommand(initproto.Message{Signal: &initproto.Signal{Number: unix.SIGTERM}}, true, nil)
	if len(box.early) != 1 {
		t.Errorf("%v wait", box.early)
	}
	box.onLaunch(launchOutcome{bootTimeNS: 1}, &report{conn: conn})
	process.Wait()
	if how := process.ProcessState.String(); how != "signal: terminated" {
		t.Errorf("it ended by %q", how)
	}
}

// TestSpareThreads: the threads exist and stay.
func TestSpareThreads(t *testing.T) {
	threads := func() int {
		entries, err := os.ReadDir("/proc/self/task")
		if err != nil {
			t.Fatal(err)
		}
		return len(entries)
	}
	spareThreads()
	first := threads()
	if first < spares {
		t.Errorf("%d threads", first)
	}
	spareThreads()
	if again := threads(); again >= first+spares {
		t.Errorf("%d threads, then %d: they were not kept", first, again)
	}
}

func TestSecondStageNames(t *testing.T) {
	seen := map[string]bool{}
	for _, preparation := range preparations {
		if seen[preparation.name] || preparation.name == "" || strings.TrimSpace(preparation.name) != preparation.name {
			t.Errorf("preparation %q", preparation.name)
		}
		seen[preparation.name] = true
	}
	order := func(first, second string) {
		t.Helper()
		at := map[string]int{}
		for i, preparation := range preparations {
			at[preparation.name] = i
		}
		if !seen[first] || !seen[second] || at[first] > at[second] {
			t.Errorf("%s does not come before %s", first, second)
		}
	}
	order("setsid", "controlling terminal")
	order("bounding set", "capabilities") // removes SETPCAP
	order("groups", "uid")
	order("gid", "uid")
	order("uid", "capabilities") // removes SETUID
	order("uid", "chdir")        // as the agent
}

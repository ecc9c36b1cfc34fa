//go:build root

package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"runtime"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/boottime"
	"clove.run/clove/internal/initproto"
	"clove.run/clove/internal/testhost"
)

// The tests play the supervisor and the launch. They make new namespaces with an id range of
// their own; in them this test binary, as the stage below, does what the launch does, and
// executes clove-init.

const (
	stageName   = "clove-init-test-stage"
	binaryFD    = 5 // clove-init, inherited on purpose without close-on-exec
	testHostID  = 0x70000000
	testIDs     = 65536
	initUID     = 65533
	agentUID    = 1000
	patience    = 20 * time.Second
	defaultPath = "PATH=/usr/local/bin:/usr/bin:/bin"
)

func TestMain(m *testing.M) {
	if os.Args[0] == stageName {
		fmt.Fprintln(os.Stderr, "stage:", stage())
		os.Exit(1)
	}
	if os.Args[0] == victimName {
		fmt.Fprintln(os.Stderr, "victim:", victim())
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// stage runs as PID 1 and root of the new namespaces.
func stage() error {
	runtime.LockOSThread()
	mounts := []struct{ source, target, kind, data string }{
		{"proc", "/proc", "proc", ""},
		{"devpts", "/dev/pts", "devpts", "newinstance,ptmxmode=0666,mode=0620"},
		{"tmpfs", "/tmp", "tmpfs", "mode=1777"},
	}
	if err := unix.Mount("", "/", "", unix.MS_REC|unix.MS_PRIVATE, ""); err != nil {
		return fmt.Errorf("private: %w", err)
	}
	for _, m := range mounts {
		if err := unix.Mount(m.source, m.target, m.kind, 0, m.data); err != nil {
			return fmt.Errorf("mount %s: %w", m.target, err)
		}
	}
	if err := unix.Mount("/dev/pts/ptmx", "/dev/ptmx", "", unix.MS_BIND, ""); err != nil {
		return fmt.Errorf("bind ptmx: %w", err)
	}
	// The calls that make a process the agent also give PID 1 its ids and capabilities.
	me := &initproto.Orders{UID: initUID, GID: initUID, Caps: strings.Split(os.Getenv("STAGE_CAPS"), ",")}
	for _, do := range []func(*initproto.Orders) error{dropBounding, setGroups, setGID, setUID, setCapabilities} {
		if err := do(me); err != nil {
			return err
		}
	}
	if err := dirty(); err != nil {
		return err
	}
	// The test may change this process until it sends the orders.
	orders := []unix.PollFd{{Fd: initproto.ControlFD, Events: unix.POLLIN}}
	for {
		if _, err := unix.Poll(orders, -1); err == nil {
			break
		} else if err != unix.EINTR {
			return err
		}
	}
	if os.Getenv("STAGE_CLOCK") != "" {
		fmt.Println(boottime.NowNS())
	}
	return unix.Exec(fmt.Sprintf("/proc/self/fd/%d", binaryFD), []string{"clove-init"}, nil)
}

// dirty sets what the agent must not inherit from a careless launch: a signal mask, ignored
// signals, a umask, and, as every launch does, a parent-death signal.
func dirty() error {
	unix.Umask(0o077)
	blocked := unix.Sigset_t{Val: [16]uint64{1 << (unix.SIGUSR1 - 1)}}
	if err := unix.PthreadSigmask(unix.SIG_SETMASK, &blocked, nil); err != nil {
		return err
	}
	signal.Ignore(unix.SIGHUP, unix.SIGPIPE, unix.SIGUSR2)
	// After the change of ids, which would have cleared it.
	return unix.Prctl(unix.PR_SET_PDEATHSIG, uintptr(unix.SIGKILL), 0, 0, 0)
}

// box is a sandbox that a test started.
type box struct {
	t       testing.TB
	conn    *initproto.Conn
	process *exec.Cmd
	exit    string // path of the exit file
	stdin   *os.File
	stdout  *os.File
	output  *bufio.Reader // of stdout
	stderr  *os.File
	done    chan error // receives PID 1's end

	thread    chan func() // the thread that started PID 1
	endThread func()
}

var initCaps = []string{"CAP_SETUID", "CAP_SETGID", "CAP_SETPCAP", "CAP_KILL", "CAP_CHOWN"}

// shell is an agent that runs a script.
func shell(script string) initproto.Orders {
	return command("/bin/sh", "-c", script)
}

func command(argv ...string) initproto.Orders {
	return initproto.Orders{Argv: argv, Env: initproto.Strings{defaultPath}, Dir: "/",
		UID: agentUID, GID: agentUID, Rlimits: []initproto.Rlimit{{Name: "nofile", Soft: 1024, Hard: 2048}}}
}

// start makes a sandbox and sends its orders.
func start(t testing.TB, orders initproto.Orders) *box {
	t.Helper()
	return startWith(t, orders, orders.Caps)
}

// startWith makes a sandbox whose init has more capabilities than it needs.
func startWith(t testing.TB, orders initproto.Orders, more []string) *box {
	t.Helper()
	testhost.Root(t)
	testhost.NoResidue(t)
	b := prepare(t, more)
	if err := b.conn.Send(initproto.Message{Orders: &orders}); err != nil {
		t.Fatal(err)
	}
	return b
}

// prepare makes a sandbox whose init waits for its orders.
func prepare(t testing.TB, more []string) *box {
	t.Helper()
	b := &box{t: t, exit: filepath.Join(t.TempDir(), "exit"), done: make(chan error, 1)}
	conn, inherited, err := initproto.Pair()
	check(t, err)
	b.conn = conn
	exit := open(t, b.exit, os.O_CREATE|os.O_WRONLY)
	binary := open(t, testhost.Binary(t, "clove-init"), os.O_RDONLY)
	outRead, outWrite, err := os.Pipe()
	check(t, err)
	errRead, errWrite, err := os.Pipe()
	check(t, err)
	inRead, inWrite, err := os.Pipe()
	check(t, err)
	b.stdin = inWrite
	ids := []syscall.SysProcIDMap{{ContainerID: 0, HostID: testHostID, Size: testIDs}}
	b.process = &exec.Cmd{Path: "/proc/self/exe", Args: []string{stageName}, Stdin: inRead, Stdout: outWrite, Stderr: errWrite,
		Env: []string{"STAGE_CAPS=" + strings.Join(append(more, initCaps...), ","),
			"STAGE_CLOCK=" + os.Getenv("STAGE_CLOCK")},
		ExtraFiles: []*os.File{inherited, exit, binary, binary}, // the fourth: a leak
		SysProcAttr: &syscall.SysProcAttr{UidMappings: ids, GidMappings: ids, GidMappingsEnableSetgroups: true,
			Credential: &syscall.Credential{},
			Cloneflags: unix.CLONE_NEWUSER | unix.CLONE_NEWPID | unix.CLONE_NEWNS | unix.CLONE_NEWIPC}}
	b.run()
	for _, file := range []*os.File{inherited, exit, binary, outWrite, errWrite, inRead} {
		file.Close()
	}
	b.stdout, b.output, b.stderr = outRead, bufio.NewReader(outRead), errRead
	t.Cleanup(func() { b.end() })
	return b
}

// run starts the process from a thread of its own, which lives until endThread: a parent-death
// signal follows the thread.
func (b *box) run() {
	b.thread = make(chan func())
	b.endThread = sync.OnceFunc(func() { close(b.thread) })
	go func() {
		runtime.LockOSThread() // it is never unlocked, so the thread ends with the goroutine
		for call := range b.thread {
			call()
		}
	}()
	check(b.t, b.startChild(b.process))
	go func() {
		b.done <- b.process.Wait()
		close(b.done)
	}()
}

// startChild starts another process from the same thread.
func (b *box) startChild(child *exec.Cmd) error {
	started := make(chan error)
	b.thread <- func() { started <- child.Start() }
	return <-started
}

// await waits until PID 1 has ended, and returns how.
func (b *box) await() error {
	select {
	case err := <-b.done:
		return err
	case <-time.After(testhost.Patience(patience)):
		_ = b.process.Process.Kill()
		b.t.Error("clove-init did not end")
		return errors.New("killed")
	}
}

// next receives one message.
func (b *box) next() initproto.Message {
	b.t.Helper()
	check(b.t, b.conn.SetReceiveDeadline(time.Now().Add(testhost.Patience(patience))))
	m, err := b.conn.Receive()
	if err != nil {
		b.t.Fatalf("no message: %v", err)
	}
	return m
}

// started expects the message that the agent executes.
func (b *box) started() *initproto.Started {
	b.t.Helper()
	m := b.next()
	if m.Started == nil {
		b.t.Fatalf("not started: %+v %+v", m.ExecFailed, m.Exited)
	}
	return m.Started
}

// exited expects the end, and the same end in the exit file.
func (b *box) exited() initproto.Exited {
	b.t.Helper()
	m := b.next()
	if m.Exited == nil {
		b.t.Fatalf("not exited: %+v %+v", m.Started, m.ExecFailed)
	}
	b.sameFile(m)
	return *m.Exited
}

// failed expects a message that the agent could not be executed.
func (b *box) failed() initproto.ExecFailed {
	b.t.Helper()
	m := b.next()
	if m.ExecFailed == nil {
		b.t.Fatalf("not failed: %+v %+v", m.Started, m.Exited)
	}
	b.sameFile(m)
	return *m.ExecFailed
}

func (b *box) sameFile(last initproto.Message) {
	b.t.Helper()
	file := b.readExit()
	got, _ := initproto.Encode(file)
	want, _ := initproto.Encode(last)
	if string(got) != string(want) {
		b.t.Errorf("exit file has %s, the message %s", got, want)
	}
}

func (b *box) readExit() initproto.Message {
	b.t.Helper()
	file := open(b.t, b.exit, os.O_RDONLY)
	defer file.Close()
	m, err := initproto.ReadExit(file)
	check(b.t, err)
	return m
}

// text returns what the agent still writes before it closes its output.
func (b *box) text() string {
	b.t.Helper()
	check(b.t, b.stdout.SetReadDeadline(time.Now().Add(testhost.Patience(patience))))
	text, err := io.ReadAll(b.output)
	if err != nil {
		b.t.Fatalf("output ends with %v after %q", err, text)
	}
	return string(text)
}

// errors returns all of stderr; it ends with PID 1, which holds it open.
func (b *box) errors() string {
	b.t.Helper()
	check(b.t, b.stderr.SetReadDeadline(time.Now().Add(testhost.Patience(patience))))
	text, err := io.ReadAll(b.stderr)
	check(b.t, err)
	return string(text)
}

// end closes the control socket and waits for PID 1's end.
func (b *box) end() {
	b.conn.Close()
	b.stdin.Close()
	b.stdout.Close()
	b.await()
	if b.t.Failed() {
		b.t.Logf("stderr: %s", b.errors())
	}
	b.stderr.Close()
	b.endThread()
}

// expect waits for one line of the agent's output.
func (b *box) expect(want string) {
	b.t.Helper()
	check(b.t, b.stdout.SetReadDeadline(time.Now().Add(testhost.Patience(patience))))
	if got, err := b.output.ReadString('\n'); err != nil || got != want+"\n" {
		b.t.Fatalf("agent wrote %q, %v; want %q", got, err, want)
	}
}

// send sends a command to PID 1.
func (b *box) send(m initproto.Message) {
	b.t.Helper()
	check(b.t, b.conn.Send(m))
}

// runs starts the agent, expects exit status 0, and returns its output.
func runs(t testing.TB, orders initproto.Orders) string {
	t.Helper()
	b := start(t, orders)
	b.started()
	if end := b.exited(); end.Code != 0 || end.Signal != 0 || end.Cause != initproto.CauseSelf {
		t.Fatalf("agent ended with %+v; it wrote %q", end, b.text())
	}
	return b.text()
}

func open(t testing.TB, path string, flags int) *os.File {
	t.Helper()
	file, err := os.OpenFile(path, flags, 0o600)
	check(t, err)
	return file
}

func check(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

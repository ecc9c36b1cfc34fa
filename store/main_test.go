package store

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// roleVariable makes this test binary play another clove process: its value is a key of roles,
// and the argument is the file.
const roleVariable = "CLOVE_STORE_TEST_ROLE"

// roles are the actions of such a process. A line on its stdin, or the end of it, lets it
// continue.
var roles = map[string]func(path string, parent *bufio.Reader) error{
	"hold":   hold,
	"kernel": kernel,
	"live":   live,
	"spend":  spend,
	"storm":  storm,
}

func TestMain(m *testing.M) {
	if role := roles[os.Getenv(roleVariable)]; role != nil {
		if err := role(os.Args[1], bufio.NewReader(os.Stdin)); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const patience = 2 * time.Minute // for anything that must happen, on a loaded machine

// hold keeps the file open until the parent continues it.
func hold(path string, parent *bufio.Reader) error {
	s, err := Open(path, patience)
	if err != nil {
		return err
	}
	fmt.Println("held")
	parent.ReadString('\n')
	return s.Close()
}

// kernel keeps kernel.db open until the parent continues it.
func kernel(path string, parent *bufio.Reader) error {
	k, err := OpenKernel(path, patience)
	if err != nil {
		return err
	}
	fmt.Println("held")
	parent.ReadString('\n')
	return k.Close()
}

// account is what a process reports to its parent.
type account struct {
	Run     agent.Run
	Longest time.Duration // its longest wait for the file
}

// live stores everything that one clove run stores.
func live(path string, parent *bufio.Reader) error {
	fmt.Println("ready")
	parent.ReadString('\n')
	var a account
	turn := func(f func(*Store) error) error {
		before := time.Now()
		s, err := Open(path, patience)
		if err != nil {
			return err
		}
		a.Longest = max(a.Longest, time.Since(before))
		return firstOf(f(s), s.Close())
	}
	tell := func() error { return json.NewEncoder(os.Stdout).Encode(a) }
	run := newRun(fmt.Sprintf("process-%d", os.Getpid()))
	begin := func(s *Store) (err error) { a.Run, err = s.Begin(run); return err }
	if err := firstOf(turn(begin), tell()); err != nil {
		return err
	}
	parent.ReadString('\n')
	finish := func(s *Store) (err error) { a.Run, err = endRun(s, run.Spec); return err }
	return firstOf(turn(finish), tell())
}

// storm stores one run after the other, and reports each end, until it is killed.
func storm(path string, _ *bufio.Reader) error {
	for {
		s, err := Open(path, patience)
		if err != nil {
			return err
		}
		run, err := s.Begin(newRun(""))
		if err == nil {
			_, err = endRun(s, run.Spec)
		}
		if err := firstOf(err, s.Close()); err != nil {
			return err
		}
		fmt.Println(run.Spec.ID)
	}
}

func firstOf(errs ...error) error {
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return nil
}

// child is a process that plays a role.
type child struct {
	*exec.Cmd
	in  io.WriteCloser
	out *bufio.Reader
}

func startChild(t *testing.T, role, path string) *child {
	t.Helper()
	c := &child{Cmd: exec.Command(os.Args[0], path)}
	c.Env = append(os.Environ(), roleVariable+"="+role)
	c.Stderr = os.Stderr
	in, err := c.StdinPipe()
	must(t, err)
	out, err := c.StdoutPipe()
	must(t, err)
	c.in, c.out = in, bufio.NewReader(out)
	must(t, c.Start())
	t.Cleanup(func() { c.Process.Kill(); c.Wait() })
	return c
}

func (c *child) line(t *testing.T) string {
	t.Helper()
	line, err := c.out.ReadString('\n')
	must(t, err)
	return line[:len(line)-1]
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// tempFile returns a path for a store that does not exist yet. At the end of the test the
// store there, if any, is checked: every test ends with its invariants.
func tempFile(t testing.TB) string {
	path := filepath.Join(t.TempDir(), "state", "clove.db")
	t.Cleanup(func() {
		if _, err := os.Stat(path); err == nil {
			checkClean(t, path)
		}
	})
	return path
}

func checkClean(t testing.TB, path string) {
	t.Helper()
	s, err := Open(path, patience)
	must(t, err)
	defer s.Close()
	problems, err := s.Check()
	must(t, err)
	for _, problem := range problems {
		t.Error("check:", problem)
	}
}

func open(t testing.TB, path string) *Store {
	t.Helper()
	s, err := Open(path, patience)
	must(t, err)
	t.Cleanup(func() {
		if s.db != nil {
			s.Close()
		}
	})
	return s
}

// openNew opens a new store that is closed and checked when the test ends.
func openNew(t testing.TB) *Store {
	t.Helper()
	return open(t, tempFile(t))
}

// newRun is a run for Begin; without a name its id is its name.
func newRun(name string) agent.Run {
	id := agent.NewID()
	if name == "" {
		name = string(id)
	}
	return agent.Run{Spec: agent.Spec{ID: id, Name: name, Command: []string{"/bin/true"}},
		Lease: &agent.Lease{BootID: "boot", SupervisorPID: os.Getpid()}}
}

func recordOf(spec agent.Spec) agent.Record {
	return agent.Record{Version: agent.RecordVersion, ID: spec.ID, Name: spec.Name, Status: agent.StatusExited}
}

// endRun moves a starting run to its end.
func endRun(s *Store, spec agent.Spec) (agent.Run, error) {
	_, started := s.Apply(spec.ID, agent.EventStarted, func(r *agent.Run) { r.PID = 4711 })
	run, err := s.Finish(spec.ID, agent.EventRecorded, recordOf(spec), nil)
	return run, firstOf(started, err)
}

// wantKind fails the test unless err is an agent.Error with this kind and step.
func wantKind(t testing.TB, err error, kind agent.Kind) *agent.Error {
	t.Helper()
	known, ok := err.(*agent.Error)
	if !ok {
		t.Fatalf("got error %v (%T), want an agent.Error", err, err)
	}
	if known.Kind != kind || known.Step == "" {
		t.Fatalf("got %q at step %q, want %q: %v", known.Kind, known.Step, kind, err)
	}
	return known
}

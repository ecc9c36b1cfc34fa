package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"clove.run/clove/internal/nsthread"
	"clove.run/clove/internal/undo"
)

// site is where a part of the benchmark starts its programs. close ends all of it, what was
// started last first: clients end before what they ask.
type site struct {
	*bench
	dir     string
	here    *nsthread.Thread // in whose namespaces the programs run
	started undo.Stack
}

func (s *site) close() error { return s.started.Run() }

// isolate starts a thread in new namespaces, which ends with the site.
func (s *site) isolate(namespaces int) (*nsthread.Thread, error) {
	thread, err := nsthread.Start(namespaces)
	if err == nil {
		s.started.Add("a thread", func() error { thread.Close(); return nil })
	}
	return thread, err
}

// start starts a program, which ends with the site.
func (s *site) start(cmd *exec.Cmd) (*program, error) {
	cmd.Dir = s.dir
	p, err := s.program(s.here, cmd)
	if err == nil {
		s.started.Add(cmd.Path, p.end)
	}
	return p, err
}

// serve starts a cloved, which ends with the site.
func (s *site) serve(d *cloved) error {
	err := d.serve()
	if err == nil {
		s.started.Add("cloved", d.end)
	}
	return err
}

// kind is one of the peers that a table compares. open starts it, or returns why this machine
// does not have it.
type kind[S, P any] struct {
	name string
	does string
	open func(S) (P, error)
}

// openAll starts those that this machine has. The table says what each does, and what is absent.
func openAll[S, P any](s S, t *table, kinds []kind[S, P]) (peers []P) {
	for _, k := range kinds {
		t.describe(k.name, k.does)
		p, err := k.open(s)
		if err != nil {
			t.Absent[k.name] = err.Error()
			continue
		}
		peers = append(peers, p)
	}
	return peers
}

func namesOf[S, P any](kinds []kind[S, P]) (names []string) {
	for _, k := range kinds {
		names = append(names, k.name)
	}
	return names
}

// program is a process that the benchmark has started.
type program struct {
	cmd    *exec.Cmd
	stderr tail
}

// program starts cmd on a thread. It is killed with the thread, so nothing is left after a
// crash of the bench.
func (b *bench) program(on *nsthread.Thread, cmd *exec.Cmd) (*program, error) {
	p := &program{cmd: cmd}
	cmd.Stderr = &p.stderr
	if cmd.Env == nil {
		cmd.Env = b.environment()
	}
	if cmd.SysProcAttr == nil {
		cmd.SysProcAttr = &syscall.SysProcAttr{}
	}
	cmd.SysProcAttr.Pdeathsig = syscall.SIGKILL
	return p, on.Do(cmd.Start)
}

// end sends SIGTERM: clove then ends its agent and cleans up, and the others end at once.
func (p *program) end() error {
	if err := p.cmd.Process.Signal(syscall.SIGTERM); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	hung := time.AfterFunc(endPatience, func() { p.cmd.Process.Kill() })
	defer hung.Stop()
	p.cmd.Wait() // its status is that of what ended it
	return nil
}

const (
	endPatience   = 20 * time.Second // then comes SIGKILL
	startPatience = 20 * time.Second
)

// await connects until p accepts: these servers do not report that they listen.
func (p *program) await(on *nsthread.Thread, address string) error {
	for began := time.Now(); ; time.Sleep(10 * time.Millisecond) {
		err := on.Do(func() error {
			conn, err := net.Dial("tcp", address)
			if err == nil {
				conn.Close()
			}
			return err
		})
		if err == nil {
			return nil
		}
		if time.Since(began) > startPatience {
			return fmt.Errorf("%s does not listen: %w: %s", filepath.Base(p.cmd.Path), err, lastLine(p.stderr.text))
		}
	}
}

const nobody = 65534

// nobodysFolder makes a folder with files for a program that runs as an unprivileged user.
func nobodysFolder(dir string, files map[string]string) error {
	if err := os.Mkdir(dir, 0o700); err != nil {
		return err
	}
	for name, text := range files {
		path := filepath.Join(dir, name)
		if err := errors.Join(os.WriteFile(path, []byte(text), 0o600), os.Chown(path, nobody, nobody)); err != nil {
			return err
		}
	}
	return os.Chown(dir, nobody, nobody)
}

// asNobody is a command of that user.
func asNobody(argv ...string) *exec.Cmd {
	cmd := exec.Command(argv[0], argv[1:]...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	return cmd
}

// ready is a client's first line: it is started, and its start is in no measurement.
const ready = "ready"

// report is a client's answer to one order.
type report struct {
	Values  []float64
	Tokens  int     // of all streams of a model
	Seconds float64 // until all callers had all answers, if that was measured
	Error   string
}

// answerOrders is a client's loop: it reads orders as lines of JSON, and writes a report on
// each. The client stays for all rounds, so that the start of a process, and of a sandbox, is in
// no sample. An error is a report too: the client stays for the next order.
func answerOrders[O any](in io.Reader, out io.Writer, obey func(O) report) error {
	fmt.Fprintln(out, ready)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var o O
		if err := json.Unmarshal(lines.Bytes(), &o); err != nil {
			return err
		}
		if err := json.NewEncoder(out).Encode(obey(o)); err != nil {
			return err
		}
	}
	return lines.Err()
}

// remote is a client in another process, with its pipes.
type remote struct {
	program *program
	in      io.Writer
	out     *bufio.Reader
}

// remote starts a client and returns when it waits for orders.
func (s *site) remote(argv ...string) (*remote, error) {
	cmd := exec.Command(argv[0], argv[1:]...)
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	r := &remote{in: in, out: bufio.NewReader(out)}
	if r.program, err = s.start(cmd); err != nil {
		return nil, err
	}
	if line, err := r.out.ReadString('\n'); err != nil || line != ready+"\n" {
		return nil, errors.Join(fmt.Errorf("the client does not begin: %q %w: %s", line, err, lastLine(r.program.stderr.text)), r.program.end())
	}
	return r, nil
}

// run sends an order and waits for the report.
func (r *remote) run(order any) (said report, err error) {
	if err := json.NewEncoder(r.in).Encode(order); err != nil {
		return said, err
	}
	line, err := r.out.ReadBytes('\n')
	if err != nil {
		return said, fmt.Errorf("the client is gone: %w: %s", err, lastLine(r.program.stderr.text))
	}
	if err = json.Unmarshal(line, &said); err == nil && said.Error != "" {
		err = fmt.Errorf("%s (%s)", said.Error, lastLine(r.program.stderr.text))
	}
	return said, err
}

// Package keep starts confined processes (package confine), and keeps each until it ends or is left:
// one that serves is started when it is needed, once, and replaced by its keeper when it has ended.
package keep

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/parent"
	"clove.run/clove/internal/packet"
)

// startTime bounds the time until a process has given up its rights.
const startTime = 20 * time.Second

// Child is a program that was started. *parent.Process is one.
type Child interface {
	Pid() int
	Kill() error
	Failure() error
}

// Spawn starts a program with files as its descriptors. One with a journal outlasts this process.
func Spawn(executable string, id uint32, journal *os.File, files ...*os.File) (Child, error) {
	if journal != nil {
		return parent.StartApart(executable, id, journal, files...)
	}
	return parent.Start(executable, id, files...)
}

// Process is one without rights.
type Process struct {
	Conn    *packet.Conn
	parent  Child
	Started time.Time
	journal string // its path; empty: the process ends with this one
	once    sync.Once
	left    atomic.Bool   // it goes on
	gone    chan struct{} // closed when it was ended or left
}

// Launcher starts processes.
type Launcher struct {
	Programs func() (string, error) // the directory of the programs
	Journals string                 // a directory; empty: processes end with this one
	Spawn    func(executable string, id uint32, journal *os.File, files ...*os.File) (Child, error)

	// Numbers is that of the process before the first: two launchers of a process have other ones, so
	// that no two processes have the same user.
	Numbers int

	mu sync.Mutex // guards Numbers
}

func (l *Launcher) number() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.Numbers++
	return l.Numbers
}

// Start starts a program; more are its descriptors after the channel. It returns when the
// process has given up its rights.
func (l *Launcher) Start(program string, more ...*os.File) (*Process, error) {
	programs, err := l.Programs()
	if err != nil {
		return nil, err
	}
	conn, inherited, err := packet.Pair()
	if err != nil {
		return nil, err
	}
	defer inherited.Close()
	p := &Process{Conn: conn, Started: time.Now(), gone: make(chan struct{})}
	var journal *os.File
	if l.Journals != "" {
		if journal, err = NewJournal(l.Journals, program); err != nil {
			conn.Close()
			return nil, fmt.Errorf("cannot make a journal: %w", err)
		}
		defer journal.Close()
		p.journal = journal.Name()
	}
	id := agent.ServiceID
	if journal != nil {
		id = agent.LastingID
	}
	if p.parent, err = l.Spawn(filepath.Join(programs, program), id(os.Getpid(), l.number()), journal, append([]*os.File{inherited}, more...)...); err != nil {
		conn.Close()
		p.forget()
		return nil, err
	}
	if journal != nil {
		err = Sign(journal, p.parent.Pid())
	}
	if err == nil {
		err = p.await()
	}
	if err != nil {
		p.End()
		return nil, fmt.Errorf("%s does not serve: %w: %s", program, err, p.Reason())
	}
	return p, nil
}

// await waits for the first message, which says that the process is ready. Both programs
// say so in the same way.
func (p *Process) await() error {
	timer := time.AfterFunc(startTime, func() { p.Conn.Close() })
	defer timer.Stop()
	var m struct {
		Ready bool `json:"ready"`
	}
	files, err := p.Conn.Receive(&m)
	packet.CloseAll(files)
	if err == nil && !m.Ready {
		err = fmt.Errorf("its first message is another")
	}
	return err
}

// End ends the process and reaps it.
func (p *Process) End() {
	p.once.Do(func() {
		close(p.gone)
		p.parent.Kill()
		p.Conn.Close()
		p.forget()
	})
}

// forget removes the journal.
func (p *Process) forget() {
	if p.journal != "" {
		os.Remove(p.journal) // one that stays is removed by the next control
	}
}

// Leave lets the process end by itself, behind its calls.
func (p *Process) Leave() {
	p.once.Do(func() {
		p.left.Store(true)
		close(p.gone)
		p.Conn.Close()
	})
}

// Ended reports whether End or Leave was called.
func (p *Process) Ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// Reason says how the process ended. End was called before.
func (p *Process) Reason() string { return p.parent.Failure().Error() }

// Pool is for processes that are started when they are needed, each once.
type Pool struct {
	starts sync.Mutex // held while a process starts; taken before mu

	sync.Mutex // guards the processes, and closed
	closed     bool
}

// ErrClosed is what Obtain returns behind Close.
var ErrClosed = errors.New("it is not served any more")

// Obtain returns what find finds, else what begin starts, which keep notes. find and keep are
// called with in held, begin without: the start of a process takes time, and calls go on
// meanwhile.
func Obtain[P interface {
	comparable
	End()
}](in *Pool, find func() P, begin func() (P, error), keep func(P)) (P, error) {
	var none P
	look := func() (P, error) {
		in.Lock()
		defer in.Unlock()
		if in.closed {
			return none, ErrClosed
		}
		return find(), nil
	}
	p, err := look()
	if err != nil || p != none {
		return p, err
	}
	in.starts.Lock()
	defer in.starts.Unlock()
	if p, err = look(); err != nil || p != none { // it was started meanwhile
		return p, err
	}
	if p, err = begin(); err != nil {
		return none, err
	}
	in.Lock()
	defer in.Unlock()
	if in.closed {
		go p.End()
		return none, ErrClosed
	}
	keep(p)
	return p, nil
}

// Close has Obtain refuse from now on. It returns with in held by its caller.
func (in *Pool) Close() { in.closed = true }

// Closed reports whether Close was called. Its caller holds in.
func (in *Pool) Closed() bool { return in.closed }

// Left reports whether Leave was called.
func (p *Process) Left() bool { return p.left.Load() }

// Gone is closed when the process was ended or left.
func (p *Process) Gone() <-chan struct{} { return p.gone }

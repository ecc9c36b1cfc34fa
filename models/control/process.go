package control

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/parent"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/models/link"
)

// The programs, which are installed beside clove-gate.
const (
	frontProgram    = "clove-models"
	upstreamProgram = "clove-upstream"
)

// startTime bounds the time until a process has given up its rights.
const startTime = 20 * time.Second

// child is a program that was started. *parent.Process is one.
type child interface {
	Pid() int
	Kill() error
	Failure() error
}

// spawn starts a program with files as its descriptors. One with a journal outlasts this process.
func spawn(executable string, id uint32, journal *os.File, files ...*os.File) (child, error) {
	if journal != nil {
		return parent.StartApart(executable, id, journal, files...)
	}
	return parent.Start(executable, id, files...)
}

// process is one of the two programs, without rights.
type process struct {
	conn    *packet.Conn
	parent  child
	started time.Time
	journal string // its path; empty: the process ends with this one
	once    sync.Once
	left    atomic.Bool   // it goes on
	gone    chan struct{} // closed when it was ended or left
}

// launcher starts processes.
type launcher struct {
	programs func() (string, error) // the directory of the two
	journals string                 // a directory; empty: processes end with this one
	spawn    func(executable string, id uint32, journal *os.File, files ...*os.File) (child, error)

	mu   sync.Mutex // guards last
	last int        // number of a process
}

func (l *launcher) number() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.last++
	return l.last
}

// start starts a program; more are its descriptors after the channel. It returns when the
// process has given up its rights.
func (l *launcher) start(program string, more ...*os.File) (*process, error) {
	programs, err := l.programs()
	if err != nil {
		return nil, err
	}
	conn, inherited, err := packet.Pair()
	if err != nil {
		return nil, err
	}
	defer inherited.Close()
	p := &process{conn: conn, started: time.Now(), gone: make(chan struct{})}
	var journal *os.File
	if l.journals != "" {
		if journal, err = newJournal(l.journals, program); err != nil {
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
	if p.parent, err = l.spawn(filepath.Join(programs, program), id(os.Getpid(), l.number()), journal, append([]*os.File{inherited}, more...)...); err != nil {
		conn.Close()
		p.forget()
		return nil, err
	}
	if journal != nil {
		err = sign(journal, p.parent.Pid())
	}
	if err == nil {
		err = p.await()
	}
	if err != nil {
		p.end()
		return nil, fmt.Errorf("%s does not serve: %w: %s", program, err, p.reason())
	}
	return p, nil
}

// await waits for the first message, which says that the process is ready. Both programs
// say so in the same way.
func (p *process) await() error {
	timer := time.AfterFunc(startTime, func() { p.conn.Close() })
	defer timer.Stop()
	var m link.FromFront
	files, err := p.conn.Receive(&m)
	packet.CloseAll(files)
	if err == nil && !m.Ready {
		err = fmt.Errorf("its first message is another")
	}
	return err
}

// end ends the process and reaps it.
func (p *process) end() {
	p.once.Do(func() {
		close(p.gone)
		p.parent.Kill()
		p.conn.Close()
		p.forget()
	})
}

// forget removes the journal.
func (p *process) forget() {
	if p.journal != "" {
		os.Remove(p.journal) // one that stays is removed by the next control
	}
}

// leave lets the process end by itself, behind its calls.
func (p *process) leave() {
	p.once.Do(func() {
		p.left.Store(true)
		close(p.gone)
		p.conn.Close()
	})
}

// ended reports whether end was called.
func (p *process) ended() bool {
	select {
	case <-p.gone:
		return true
	default:
		return false
	}
}

// reason says how the process ended. end was called before.
func (p *process) reason() string { return p.parent.Failure().Error() }

// stream makes two connected sockets.
func stream() (near, far *os.File, err error) {
	return passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
}

// pool is for processes that are started when they are needed, each once.
type pool struct {
	starts sync.Mutex // held while a process starts; taken before mu

	mu     sync.Mutex // guards closed, and the processes
	closed bool
}

var errClosed = errors.New("models are not served any more")

// obtain returns what find finds, else what begin starts, which keep notes. find and keep are
// called with in.mu held, begin without: the start of a process takes time, and calls go on
// meanwhile.
func obtain[P interface {
	comparable
	end()
}](in *pool, find func() P, begin func() (P, error), keep func(P)) (P, error) {
	var none P
	look := func() (P, error) {
		in.mu.Lock()
		defer in.mu.Unlock()
		if in.closed {
			return none, errClosed
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
	in.mu.Lock()
	defer in.mu.Unlock()
	if in.closed {
		go p.end()
		return none, errClosed
	}
	keep(p)
	return p, nil
}

package control

import (
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/parent"
	"clove.run/clove/internal/packet"
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
	Kill() error
	Failure() error
}

// spawn starts a program with files as its descriptors.
func spawn(executable string, id uint32, files ...*os.File) (child, error) {
	return parent.Start(executable, id, files...)
}

// process is one of the two programs, without rights.
type process struct {
	conn   *packet.Conn
	parent child
	once   sync.Once
	gone   chan struct{} // closed when it was ended
}

// start starts a program; more are its descriptors after the channel. It returns when the
// process has given up its rights.
func (c *Control) start(program string, more ...*os.File) (*process, error) {
	programs, err := c.options.Programs()
	if err != nil {
		return nil, err
	}
	conn, inherited, err := packet.Pair()
	if err != nil {
		return nil, err
	}
	defer inherited.Close()
	c.last++
	child, err := c.spawn(filepath.Join(programs, program), agent.ServiceID(os.Getpid(), int(c.last)), append([]*os.File{inherited}, more...)...)
	if err != nil {
		conn.Close()
		return nil, err
	}
	p := &process{conn: conn, parent: child, gone: make(chan struct{})}
	if err := p.await(); err != nil {
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

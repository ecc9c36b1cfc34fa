package swap

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/internal/confine/parent"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/internal/undo"
)

// Program is the name of the program, which is installed beside clove-init.
const Program = "clove-swap"

// startTime bounds the time until a process has dropped its privileges.
const startTime = 20 * time.Second

// Config is the configuration of one run's swap.
type Config struct {
	Program string    // path of clove-swap
	IDs     [2]uint32 // users and groups of the two processes on the host, which no other process has
	Secrets []link.Secret
	Roots   *os.File // the system's authorities, PEM, which Start takes over; nil: there are none
	Values  *os.File // the reading end of a pipe of link.Values, which Start takes over
	// SSH is a Unix listener, at which the users SSHIDs find an ssh agent, and which Start takes over; nil: no secret is an ssh key.
	SSH    *os.File
	SSHIDs link.IDs
	// Use decides whether a request may carry a secret, and may pass new values on before. Many goroutines call it at once, and it may
	// take its time.
	Use func(ctx context.Context, on *Swap, use link.Use) link.Verdict
	// Denied gets what was refused, or left with a placeholder in it. It must not block.
	Denied func(link.Denied)
}

// Swap serves one run.
type Swap struct {
	config       Config
	spawn        spawn
	outer, inner side
	ca           []byte
	hosts        []string
	ctx          context.Context // until Stop
	cancel       context.CancelFunc
	undo         undo.Stack

	mu     sync.Mutex // guards number
	number uint64
	lost   chan error
}

// side is one of the processes.
type side struct {
	conn    *packet.Conn
	process process
}

// process is a program that was started. *parent.Process is one.
type process interface {
	Kill() error
	Failure() error
}

// spawn starts a program without rights, with files as its descriptors.
type spawn func(program string, id uint32, files ...*os.File) (process, error)

// Start starts the processes. It returns when they have no rights left, and on failure nothing is left. The caller ends them with Stop.
func Start(c Config) (*Swap, error) {
	return start(c, func(program string, id uint32, files ...*os.File) (process, error) {
		return parent.Start(program, id, files...)
	})
}

func start(c Config, spawn spawn) (*Swap, error) {
	s := &Swap{spawn: spawn, config: c, lost: make(chan error, 2)}
	s.ctx, s.cancel = context.WithCancel(context.Background())
	defer c.Values.Close()
	if c.Roots != nil {
		defer c.Roots.Close()
	}
	if c.SSH != nil {
		defer c.SSH.Close()
	}
	for _, one := range c.Secrets {
		if one.Terms.SSH == nil { // ssh goes to its host by itself
			s.hosts = append(s.hosts, one.Terms.Hosts...)
		}
	}
	slices.Sort(s.hosts)
	s.hosts = slices.Compact(s.hosts)
	if err := s.start(); err != nil {
		return nil, errors.Join(err, s.Stop())
	}
	return s, nil
}

func (s *Swap) start() (err error) {
	one, other, err := passfd.Pair(unix.SOCK_SEQPACKET)
	if err != nil {
		return err
	}
	defer packet.CloseAll([]*os.File{one, other})
	if s.outer, err = s.launch(s.config.IDs[0], one); err != nil {
		return err
	}
	if s.inner, err = s.launch(s.config.IDs[1], other); err != nil {
		return err
	}
	first := link.Outer{Names: s.names()}
	var listener []*os.File
	if s.config.SSH != nil {
		first.SSH, listener = &s.config.SSHIDs, []*os.File{s.config.SSH}
	}
	ready, err := s.outer.begin(link.Order{Outer: &first}, listener...)
	if err != nil {
		return err
	}
	s.ca = ready.CA
	var roots []*os.File
	if s.config.Roots != nil {
		roots = append(roots, s.config.Roots)
	}
	if _, err = s.inner.begin(link.Order{Inner: &link.Inner{Secrets: s.config.Secrets}}, roots...); err != nil {
		return err
	}
	if err := s.inner.conn.Send(link.Order{Values: true}, s.config.Values); err != nil {
		return err
	}
	go s.listen(s.outer)
	go s.listen(s.inner)
	return nil
}

// names are those of the hosts, without ports.
func (s *Swap) names() (names []string) {
	for _, host := range s.hosts {
		name, _, _ := strings.Cut(host, ":")
		names = append(names, name)
	}
	return slices.Compact(names)
}

// launch starts a process with its channel, and the channel to the other one.
func (s *Swap) launch(id uint32, peer *os.File) (of side, err error) {
	conn, inherited, err := packet.Pair()
	if err != nil {
		return of, err
	}
	defer inherited.Close()
	s.undo.Add("channel of secrets", func() error { conn.Close(); return nil })
	process, err := s.spawn(s.config.Program, id, inherited, peer)
	if err != nil {
		return of, err
	}
	s.undo.Add("process of secrets", process.Kill)
	return side{conn, process}, nil
}

// begin gives a process its first message, and waits until it is ready.
func (p side) begin(order link.Order, files ...*os.File) (*link.Ready, error) {
	timer := time.AfterFunc(startTime, func() { p.conn.Close() })
	defer timer.Stop()
	var m link.Report
	err := p.conn.Send(order, files...)
	if err == nil {
		var files []*os.File
		files, err = p.conn.Receive(&m)
		packet.CloseAll(files)
	}
	if err == nil && m.Ready == nil {
		err = errors.New("its first message is another")
	}
	if err != nil {
		p.process.Kill()
		return nil, fmt.Errorf("%s does not serve: %w: %w", Program, err, p.process.Failure())
	}
	return m.Ready, nil
}

// listen takes a process's messages until it is gone.
func (s *Swap) listen(p side) {
	for {
		var m link.Report
		files, err := p.conn.Receive(&m)
		packet.CloseAll(files) // an honest one sends none
		if err != nil {
			if s.ctx.Err() == nil {
				s.lost <- err
			}
			return
		}
		switch {
		case m.Use != nil && p.conn == s.inner.conn:
			go s.decide(*m.Use)
		case m.Denied != nil:
			s.config.Denied(bounded(*m.Denied))
		}
	}
}

// decide has a use decided. The process may name any secret and request: it can use what its run may use.
func (s *Swap) decide(use link.Use) {
	verdict := link.Verdict{Reason: "the run has no such secret"}
	if slices.ContainsFunc(s.config.Secrets, func(one link.Secret) bool { return one.Name == use.Secret }) {
		use.Request = boundedRequest(use.Request)
		verdict = s.config.Use(s.ctx, s, use)
	}
	verdict.Number = use.Number
	_ = s.inner.conn.Send(link.Order{Verdict: &verdict}) // a process that is gone asks no more
}

// textMost bounds each text that a process reports, in bytes.
const textMost = 512

// bounded is a report as records may have it.
func bounded(d link.Denied) link.Denied {
	d.Request = boundedRequest(d.Request)
	d.Secret, d.Reason, d.Detail = printable(d.Secret), link.Reason(printable(string(d.Reason))), printable(d.Detail)
	return d
}

func boundedRequest(r link.Request) link.Request {
	return link.Request{Host: printable(r.Host), Method: printable(r.Method), Path: printable(r.Path)}
}

// printable is a text in ASCII, cut.
func printable(text string) string {
	text = text[:min(len(text), textMost)]
	return strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, text)
}

// CA is the certificate of the run's authority, PEM; empty: no secret is for requests.
func (s *Swap) CA() []byte { return s.ca }

// Takes reports whether connections to a host pass through here.
func (s *Swap) Takes(name string, port uint16) bool {
	return slices.Contains(s.hosts, net.JoinHostPort(name, fmt.Sprint(port)))
}

// Names reports whether one of the hosts has a name, on whichever port.
func (s *Swap) Names(name string) bool { return slices.Contains(s.names(), name) }

// Connect passes a connected socket to a server on, and returns what the agent's side is relayed to. server stays the
// caller's.
func (s *Swap) Connect(name string, port uint16, server *os.File) (*os.File, error) {
	agent, far, err := passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer far.Close()
	s.mu.Lock()
	s.number++
	of := link.Conn{Number: s.number, Name: name, Port: port}
	s.mu.Unlock()
	if err = s.inner.conn.Send(link.Order{Conn: &of}, server); err == nil {
		err = s.outer.conn.Send(link.Order{Conn: &of}, far)
	}
	if err != nil {
		agent.Close()
		return nil, err
	}
	return agent, nil
}

// Renew passes new values on. It takes the pipe over.
func (s *Swap) Renew(values *os.File) error {
	defer values.Close()
	return s.inner.conn.Send(link.Order{Values: true}, values)
}

// Done is closed by Stop.
func (s *Swap) Done() <-chan struct{} { return s.ctx.Done() }

// Lost gets a value when one of the processes has ended by itself.
func (s *Swap) Lost() <-chan error { return s.lost }

// Stop ends the processes.
func (s *Swap) Stop() error {
	s.cancel()
	return s.undo.Run()
}

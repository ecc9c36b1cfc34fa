package control

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/ledger"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// soon bounds every wait of a test.
const soon = 20 * time.Second

// spentLedger has grants and limits as the test says, and notes what is reserved.
type spentLedger struct {
	mu       sync.Mutex // guards the following
	grants   map[string]bool
	limits   budget.Amounts
	used     budget.Amounts
	last     int
	open     map[string]reserved
	reserved []reserved
	renewed  []budget.Amounts
	changed  chan struct{}
	ahead    budget.Amounts // of the last settlement
	settled  chan budget.Amounts
}

// reserved is what was reserved for a call.
type reserved struct {
	ledger.Spending
	amounts budget.Amounts
}

func newLedger(models ...string) *spentLedger {
	l := &spentLedger{grants: map[string]bool{}, limits: budget.Amounts{}, used: budget.Amounts{}, open: map[string]reserved{}, changed: make(chan struct{}), settled: make(chan budget.Amounts, 256)}
	for _, name := range models {
		l.grants["model:"+name] = true
	}
	return l
}

func (l *spentLedger) Allowed(_ agent.Run, what string) (bool, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.grants[what], nil
}

func (l *spentLedger) Left(agent.Run, *ledger.Ceiling) (budget.Left, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.left(), nil
}

// left is what is left. l.mu is held.
func (l *spentLedger) left() budget.Left {
	left := budget.Left{Free: budget.Amounts{}, Unheld: budget.Amounts{}}
	for d, limit := range l.limits {
		left.Unheld[d] = limit - of(l.used, d)
		left.Free[d] = left.Unheld[d]
		for _, r := range l.open {
			left.Free[d] -= of(r.amounts, d)
		}
	}
	return left
}

// of is how much of a dimension amounts have; tokens are both kinds together.
func of(a budget.Amounts, d budget.Dimension) int64 {
	if d == budget.Tokens {
		return a[budget.TokensIn] + a[budget.TokensOut]
	}
	return a[d]
}

func (l *spentLedger) Changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.changed
}

func (l *spentLedger) Reserve(_ agent.Run, s ledger.Spending) (string, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if !l.grants[s.What] {
		return "", api.Failure(api.CodeDenied, "ask for it", "no grant for %s", s.What)
	}
	amounts := budget.Amounts{}
	if s.Fit != nil {
		var err error
		if amounts, err = s.Fit(l.left()); err != nil {
			return "", err
		}
	}
	if !amounts.Fits(l.left().Free) {
		return "", api.Failure(api.CodeBudget, "", "%v wanted, %v left", amounts, l.left())
	}
	l.last++
	id := fmt.Sprint(l.last)
	l.open[id] = reserved{s, amounts}
	l.reserved = append(l.reserved, l.open[id])
	return id, nil
}

func (l *spentLedger) Settle(_ agent.Run, s ledger.Settlement) error {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r, found := l.open[s.Reservation]; !found || r.Service != s.Service {
		return api.Failure(api.CodeNotFound, "", "no reservation %s", s.Reservation)
	}
	delete(l.open, s.Reservation)
	l.ahead = s.Ahead
	for d, n := range s.Used {
		l.used[d] += n
	}
	close(l.changed)
	l.changed = make(chan struct{})
	l.settled <- s.Used
	return nil
}

// reservations returns those so far, and how many are open.
func (l *spentLedger) reservations() (all []reserved, open int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.reserved, len(l.open)
}

// fake is the other side of a process: the test plays clove-models or clove-upstream.
type fake struct {
	t     *testing.T
	conn  *packet.Conn
	setup link.Setup
	files atomic.Int64
	front chan link.ToFront
	up    chan link.ToUpstream
}

// Pid implements child.
func (f *fake) Pid() int { return os.Getpid() }

// Kill implements child.
func (f *fake) Kill() error { return f.conn.Close() }

// Failure implements child.
func (f *fake) Failure() error { return errors.New("the test ended it") }

// receive takes messages, and keeps none of the descriptors.
func (f *fake) receive(upstream bool) {
	for {
		var m struct {
			link.ToFront
			Call   *link.Call
			Cancel uint64
			Socket *link.Socket
			More   *link.More
		}
		files, err := f.conn.Receive(&m)
		f.files.Add(int64(len(files)))
		packet.CloseAll(files)
		switch {
		case err != nil:
			close(f.front)
			return
		case upstream:
			f.up <- link.ToUpstream{Call: m.Call, Cancel: m.Cancel, Socket: m.Socket, More: m.More}
		default:
			f.front <- m.ToFront
		}
	}
}

// rig is a Control whose processes are fakes.
type rig struct {
	used func() []agent.ModelUse // of the run that was served last
	t    *testing.T
	*Control
	ledger    *spentLedger
	config    atomic.Pointer[config.Config]
	fronts    chan *fake // in the order of their start
	upstreams chan *fake
	called    chan models.Call // calls that have ended
}

// file is the configuration of the tests.
const file = `
providers:
  p: {family: openai, url: "https://p.example/v1", key: secret, users: ["*"]}
  narrow: {family: openai, url: "https://p.example/v1", users: ["*"], limits: {concurrency: 1}}
  metered: {family: openai, url: "https://p.example/v1", users: ["*"], budgets: {1000: [tokens=1000]}}
  claude: {family: anthropic, url: "https://c.example", users: ["1000"]}
models:
  small: {targets: [{provider: p, model: theirs}], factor: 2, max_output: 500, context: 10000}
  queued: {targets: [{provider: narrow, model: theirs}]}
  free: {targets: [{provider: p, model: unpriced}]}
  metered: {targets: [{provider: metered, model: theirs}]}
  haiku: {targets: [{provider: claude, model: haiku}]}
aliases: {tiny: small}
prices:
- {provider: p, model: theirs, in: 1000, cache_write_long: 5000, out: 10000, tiers: {priority: 2}, date: 2026-11-20, source: a test}
`

func newRig(t *testing.T) *rig {
	t.Helper()
	l := newLedger("small", "queued", "free", "metered", "haiku", "echo")
	r := newRigWith(t, l)
	r.ledger = l
	return r
}

// newRigWith is a rig with another ledger.
func newRigWith(t *testing.T, l Ledger) *rig {
	t.Helper()
	r := &rig{t: t, fronts: make(chan *fake, 8), upstreams: make(chan *fake, 8), called: make(chan models.Call, 256)}
	r.load(file)
	r.Control = New(Options{Ledger: l, Config: r.config.Load, Programs: func() (string, error) { return "/none", nil },
		Secret: func(name string) (string, error) { return "the key " + name, nil }, Log: slog.New(slog.DiscardHandler),
		Called: r.calls})
	r.launcher.Spawn, r.Control.fronts.pause = r.spawn, 0
	t.Cleanup(func() { _ = r.Close() })
	return r
}

// calls notes a call that has ended, unless nobody reads them: some tests make thousands.
func (r *rig) calls(_ agent.Run, c models.Call) {
	select {
	case r.called <- c:
	default:
	}
}

func (r *rig) load(text string) {
	r.t.Helper()
	c, err := config.Parse([]byte(text))
	if err != nil {
		r.t.Fatal(err)
	}
	r.config.Store(c)
}

// spawn starts a fake.
func (r *rig) spawn(executable string, _ uint32, _ *os.File, files ...*os.File) (keep.Child, error) {
	conn, err := take(files[0])
	if err != nil {
		return nil, err
	}
	f := &fake{t: r.t, conn: packet.New(conn), front: make(chan link.ToFront, 256), up: make(chan link.ToUpstream, 256)}
	to, program := r.fronts, filepath.Base(executable)
	if program == upstreamProgram {
		to = r.upstreams
		pipe, err := take(files[1])
		if err == nil {
			err = json.NewDecoder(pipe).Decode(&f.setup)
			pipe.Close()
		}
		if err != nil {
			return nil, err
		}
	}
	go f.receive(program == upstreamProgram)
	to <- f
	return f, f.conn.Send(link.FromFront{Ready: true})
}

// take duplicates a descriptor that its owner closes.
func take(file *os.File) (*os.File, error) {
	fd, err := unix.FcntlInt(file.Fd(), unix.F_DUPFD_CLOEXEC, 3)
	if err != nil {
		return nil, err
	}
	return passfd.New(fd)
}

// serve serves a new run of a user, and returns it.
func (r *rig) serve(uid uint32) agent.Run {
	r.t.Helper()
	return r.serveRun(agent.Run{Spec: agent.Spec{ID: agent.NewID(), Name: "worker"}, Owner: agent.Owner{UID: uid, GID: uid}})
}

// serveLogged serves a run that asks for a log of what its calls say.
func (r *rig) serveLogged(uid uint32) agent.Run {
	r.t.Helper()
	return r.serveRun(agent.Run{Spec: agent.Spec{ID: agent.NewID(), Name: "logged", Kernel: agent.Kernel{ModelLog: true}}, Owner: agent.Owner{UID: uid, GID: uid}})
}

func (r *rig) serveRun(run agent.Run) agent.Run {
	r.t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		r.t.Fatal(err)
	}
	defer listener.Close()
	copied, err := listener.(*net.TCPListener).File()
	if err == nil {
		var ctx, cancel = context.WithCancel(r.t.Context())
		r.t.Cleanup(cancel)
		r.used, err = r.Serve(ctx, run, copied)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	return run
}

// within waits for a value.
func within[T any](t *testing.T, from <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-from:
	case <-time.After(soon):
		t.Fatal("nothing came")
	}
	return v
}

// begin asks for a call, and returns what control answers.
func (f *fake) begin(b link.Begin) link.ToFront {
	f.t.Helper()
	f.send(link.FromFront{Begin: &b})
	return within(f.t, f.front)
}

func (f *fake) send(m any) {
	f.t.Helper()
	if err := f.conn.Send(m); err != nil {
		f.t.Fatal(err)
	}
}

package runtime

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/egress"
	"clove.run/clove/egress/host"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/store"
)

// Kernel answers for what agents share: grants and budgets. Either cloved does, or, where
// none runs, the process that supervises a run in the foreground.
type Kernel interface {
	// Attach makes the run's grants and budgets ready, and calls changed with how the run
	// stands: once before it returns, and after each change until ctx ends.
	Attach(ctx context.Context, run agent.Run, changed func(api.Standing)) error
	// Serve answers the calls of the run's agent that come on calls, which is an end of a
	// kernel/channel and stays the caller's. It returns when ctx ends, when the gate at the other
	// end is gone, or when it cannot go on.
	Serve(ctx context.Context, run agent.ID, calls *os.File) error
	// Call is one call in the name of the run's agent, for the supervisor itself. The error is an
	// *api.Error.
	Call(ctx context.Context, run agent.ID, method string, params json.RawMessage) (json.RawMessage, error)
	// Meter reports what the Linux kernel has counted since a start of the run, by dimension.
	Meter(ctx context.Context, run agent.ID, start int, totals map[string]int64) error
}

// share is a run's part in what agents share.
type share struct {
	kernel   Kernel
	run      agent.ID
	ctx      context.Context // of the run
	stands   chan api.Standing
	calls    *channel.Conn      // to the gate; nil: the agent has no socket
	net      []api.NetRule      // of the last standing; the launch's, then the loop's
	granted  []agent.EgressRule // those of net that are in force
	start    int                // the number of this start, for Meter
	refusals *refusals
	watcher  *watcher // nil: the run has no shadow
	callouts *callouts

	// The loop's:
	metered  map[string]bool  // dimensions of which somebody limits what the Linux kernel counts
	metering <-chan error     // of a report under way; nil: none is
	sending  map[string]int64 // what is in that report
	sent     map[string]int64 // what has arrived
	pausedAt int64            // CLOCK_BOOTTIME
	stoodNS  int64            // how long pauses that are over took
	paused   bool             // the loop: a budget has the agent stand still

	mu sync.Mutex // stands is sent to by one at a time
}

// attach makes ready what the run shares with others.
func (l *launch) attach() error {
	if l.streams.Kernel == nil && !l.spec.Kernel.Shares() {
		return nil
	}
	if l.streams.Kernel == nil {
		return &agent.Error{Kind: agent.KindUnenforceable, Step: "kernel", Message: "grants and budgets are not available here",
			Hint: "start the run with `clove run`"}
	}
	ctx, cancel := context.WithCancel(context.Background())
	l.share = &share{kernel: l.streams.Kernel, run: l.spec.ID, ctx: ctx, stands: make(chan api.Standing, 1), refusals: l.refusals, watcher: l.watcher, callouts: newCallouts(l), sent: map[string]int64{}}
	l.undo.Add("kernel", func() error { cancel(); return nil })
	if err := l.share.kernel.Attach(ctx, l.run, l.share.changed); err != nil {
		return err
	}
	// Before the gate starts: the agent's first connection is decided by all rules.
	first := l.share.first()
	l.share.net, l.share.start = first.Net, first.Start
	l.share.granted = l.share.open(time.Now())
	if !l.spec.Gated() {
		return nil
	}
	rules, err := rulesOf(l.share.withGranted(l.spec), l.streams.Owner)
	l.rules = rules
	return err
}

// open are the rules of net grants that have not expired.
func (s *share) open(now time.Time) (rules []agent.EgressRule) {
	for _, rule := range s.net {
		if rule.Expires.IsZero() || now.Before(rule.Expires) {
			rules = append(rules, rule.EgressRule)
		}
	}
	return rules
}

// grants are the rules of net grants that are in force. nil has none.
func (s *share) grants() []agent.EgressRule {
	if s == nil {
		return nil
	}
	return s.granted
}

// withGranted is the spec with the rules of net grants. nil has none.
func (s *share) withGranted(spec agent.Spec) agent.Spec {
	if s == nil || len(s.granted) == 0 {
		return spec
	}
	spec.Egress.Rules = slices.Concat(spec.Egress.Rules, s.granted)
	if spec.Network == agent.NetworkNone {
		spec.Network = agent.NetworkAllowlist
	}
	return spec
}

// changed keeps the newest standing for the supervisor's loop, which may not have begun.
// Notifications of an older one that nobody took are kept.
func (s *share) changed(now api.Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case old := <-s.stands:
		now.Notices = api.Joined(old.Notices, now.Notices...)
	default:
	}
	s.stands <- now // there is room: only this function sends, and s.mu is held
}

// first returns how the run stands before it starts, and leaves it for the loop.
func (s *share) first() api.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := <-s.stands // Attach has put one there, and only the loop takes it
	s.stands <- first
	return first
}

// openSocket makes the agent's own socket and the channel on which its calls come.
func (l *launch) openSocket() (*host.AgentSocket, error) {
	if !l.spec.Kernel.HasSocket() {
		return nil, nil
	}
	listener, err := listenForAgent(l.runtime.paths.services(l.spec.ID))
	if err != nil {
		return nil, err
	}
	calls, gate, err := channel.Pair()
	if err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	l.share.calls = calls
	l.undo.Add("agent socket", calls.Close)
	served := calls
	if what, _, _ := l.spec.Kernel.Denial(); what != "deny" || l.watcher != nil {
		if served, err = l.share.watch(calls); err != nil {
			return nil, errors.Join(err, listener.Close(), gate.Close())
		}
		l.undo.Add("watched calls", served.Close)
	}
	go l.share.serve(served)
	return &host.AgentSocket{Listener: listener, Calls: gate, First: l.run.Lease.HostID(), Count: agent.IDsPerAgent}, nil
}

// listenForAgent makes the socket in a directory of its own, which is all that the agent
// sees of the run directory. Whoever reaches the socket may connect; who sent each byte is
// checked then.
func listenForAgent(dir string) (*os.File, error) {
	if err := os.Mkdir(dir, 0o755); err != nil {
		return nil, err
	}
	if err := os.Chmod(dir, 0o755); err != nil { // whatever the umask is
		return nil, err
	}
	at, err := os.Open(dir)
	if err != nil {
		return nil, err
	}
	defer at.Close()
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		return nil, os.NewSyscallError("socket", err)
	}
	file := os.NewFile(uintptr(fd), "agent.sock")
	if err := listenAt(fd, fmt.Sprintf("/proc/self/fd/%d/%s", at.Fd(), agentSocketName)); err != nil {
		file.Close()
		return nil, err
	}
	if err := os.Chmod(filepath.Join(dir, agentSocketName), 0o666); err != nil {
		file.Close()
		return nil, err
	}
	return file, nil
}

const agentSocketName = "agent.sock"

// listenAt binds by a short path: a run directory may be too long for sockaddr_un. The
// option comes before listen(2), so that no connection is without it.
func listenAt(fd int, path string) error {
	if err := unix.SetsockoptInt(fd, unix.SOL_SOCKET, unix.SO_PASSCRED, 1); err != nil {
		return os.NewSyscallError("setsockopt", err)
	}
	if err := unix.Bind(fd, &unix.SockaddrUnix{Name: path}); err != nil {
		return os.NewSyscallError("bind", err)
	}
	return os.NewSyscallError("listen", unix.Listen(fd, 64))
}

// reported gets the answer to a report of readings. nil has none.
func (s *share) reported() <-chan error {
	if s == nil {
		return nil
	}
	return s.metering
}

// notify sends the agent a notification. It must not block the supervisor's loop.
func (s *share) notify(all []api.Notice) {
	if s.calls == nil || len(all) == 0 {
		return
	}
	go func() {
		for _, n := range all {
			_ = s.calls.Send(channel.ToGate{Notice: &channel.Notice{Notice: n}})
		}
	}()
}

// onStanding does what a change of grants and budgets means for the run.
func (s *supervisor) onStanding(now api.Standing) {
	s.share.notify(now.Notices)
	s.warn(now.Notices)
	s.share.metered = map[string]bool{}
	for _, dimension := range now.Metered {
		s.share.metered[dimension] = true
	}
	s.share.callouts.spent(now.Spent)
	s.share.net = now.Net
	s.grantNetwork()
	var pause *api.Budget
	for i, b := range now.Spent {
		switch b.AtEnd {
		case "end":
			peak := b.Peak
			hit := agent.LimitHit{Name: b.Dimension, Value: *b.Granted, Peak: &peak}
			if !strings.HasSuffix(b.Account, "/run:"+string(s.spec.ID)) {
				hit.Account = b.Account
			}
			s.seen.blameBudget(hit)
			s.end(causeBudget, 0)
			return
		case "pause":
			pause = cmp.Or(pause, &now.Spent[i])
		}
	}
	s.pauseForBudget(pause)
}

// warn shows the user what reached its mark.
func (s *supervisor) warn(notices []api.Notice) {
	for _, n := range notices {
		var note api.BudgetNote
		if n.Method != api.NoteBudgetWarning || json.Unmarshal(n.Params, &note) != nil {
			continue
		}
		s.share.callouts.warned(note.Budget)
		if s.streams.Warned != nil {
			s.streams.Warned(note.Budget)
		}
	}
}

// blameBudget notes the dimension that ended the run, if nothing else did before.
func (o *outcome) blameBudget(hit agent.LimitHit) {
	if o.cause == causeNone {
		o.budget = &hit
	}
}

// grantNetwork puts the rules of net grants in force, beside those that the run began with.
// It is called again from time to time: cloved may be away when one expires, and the wall
// clock may be set.
func (s *supervisor) grantNetwork() {
	granted := s.share.open(time.Now())
	if s.gate == nil || s.gate.lost != "" || slices.Equal(s.share.granted, granted) {
		return
	}
	s.share.granted = granted
	rules, err := rulesOf(s.share.withGranted(*s.spec), s.streams.Owner)
	if err != nil {
		rules, err = egress.New(egress.Config{Mode: agent.NetworkNone, IsHost: host.Owns}) // fail closed: what was granted cannot be enforced
		if err != nil {
			return
		}
	}
	s.gate.Replace(rules)
	if shadow, err := s.share.watcher.rules(granted); err == nil { // the rules of before go on otherwise
		s.gate.ReplaceShadow(shadow)
	}
}

// pauseForBudget freezes the agent while a budget of which nothing is left asks for that.
// nil: none does.
func (s *supervisor) pauseForBudget(spent *api.Budget) {
	pause := spent != nil
	if pause == s.share.paused {
		return
	}
	var err error
	if pause {
		err = s.freezer.pause(s.seen.cause != causeNone)
	} else {
		err = s.freezer.resume()
	}
	if err != nil && agent.KindOf(err) != agent.KindConflict {
		return
	}
	if now := boottime.NowNS(); pause {
		s.share.pausedAt = now
	} else {
		s.share.stoodNS += now - s.share.pausedAt
	}
	s.share.paused = pause
	s.notePaused(spent)
	if pause && s.streams.PausedFor != nil {
		s.streams.PausedFor(*spent, s.timeoutAt())
	}
}

// notePaused stores for lists of runs that a budget pauses the agent; nil: none does. If
// that fails, the lists alone are wrong, until the next pause or start.
func (s *supervisor) notePaused(spent *api.Budget) {
	what, detail := agent.RunResumed, "the budget has more"
	if spent != nil {
		what, detail = agent.RunPaused, "nothing is left of "+spent.Dimension+" in "+spent.Account
	}
	_ = s.paths.withStore(func(st *store.Store) error {
		_, err := st.Amend(s.spec.ID, what, detail, func(run *agent.Run) { run.SetPaused(spent != nil) })
		return err
	})
}

// timeoutAt is when the wall clock ends the agent; zero: never.
func (s *supervisor) timeoutAt() time.Time {
	if s.spec.Limits.WallClock == 0 {
		return time.Time{}
	}
	return time.Now().Add(s.spec.Limits.WallClock - time.Duration(boottime.NowNS()-s.began))
}

package runtime

import (
	"context"
	"encoding/json"
	"maps"
	"slices"
	"sync"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/channel"
)

// share is a run's part in what agents share.
type share struct {
	kernel    Kernel
	run       agent.ID
	ctx       context.Context // of the run
	standings chan api.Standing
	calls     *channel.Conn      // to the gate; nil: the agent has no socket
	net       []api.NetRule      // of the last standing; the launch's, then the loop's
	granted   []agent.EgressRule // those of net that are in force
	start     int                // the number of this start, for Meter
	refusals  *refusals
	shadow    *shadowRecorder // nil: the run has no shadow
	callouts  *callouts
	force     inForce
	asked     func(context.Context, api.Approval)
	questions questions

	// The loop's:
	metered  map[string]bool  // limited dimensions that the Linux kernel counts
	metering <-chan error     // of a report under way; nil: none is
	sending  map[string]int64 // what is in that report
	sent     map[string]int64 // what has arrived
	pausedAt int64            // CLOCK_BOOTTIME
	stoodNS  int64            // how long pauses that are over took
	paused   bool             // the loop: a budget has the agent stand still
	more     moreAsked        // the loop's
	shown    map[string]bool  // the loop's: questions about calls that wait

	mu   sync.Mutex    // standings is sent to by one at a time
	news chan struct{} // closed by the next standing; nil: nothing waits for it. mu guards it
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
// Notifications of an older one that was not taken are kept.
func (s *share) changed(now api.Standing) {
	s.mu.Lock()
	defer s.mu.Unlock()
	select {
	case old := <-s.standings:
		now.Notices = api.Joined(old.Notices, now.Notices...)
	default:
	}
	s.standings <- now // there is space: only this function sends, and s.mu is held
	if s.news != nil {
		close(s.news)
		s.news = nil
	}
}

// changes is closed by the next standing.
func (s *share) changes() <-chan struct{} {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.news == nil {
		s.news = make(chan struct{})
	}
	return s.news
}

// first returns how the run stands before it starts, and leaves it for the loop.
func (s *share) first() api.Standing {
	s.mu.Lock()
	defer s.mu.Unlock()
	first := <-s.standings // Attach has put one there, and only the loop takes it
	s.standings <- first
	return first
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

// warn reports what reached its mark to the user, unless shown is nil, and to the run's commands.
func (s *share) warn(notices []api.Notice, shown func(api.Budget)) {
	for _, n := range notices {
		var note api.BudgetNote
		if n.Method != api.NoteBudgetWarning || json.Unmarshal(n.Params, &note) != nil {
			continue
		}
		s.callouts.warned(note.Budget)
		if shown != nil {
			shown(note.Budget)
		}
	}
}

// chargedPatience bounds the wait for the answer about budgets at the end of a run.
const chargedPatience = 2 * time.Second

// charged is what the run's own budgets have counted, for a shadow that has some. If they cannot
// be read, the record says so.
func (s *share) charged(run agent.Run, shadow *agent.Shadow) map[string]int64 {
	if s == nil || shadow == nil || len(shadow.Kernel.Budgets) == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeout(s.ctx, chargedPatience)
	defer cancel()
	text, err := s.kernel.Call(ctx, run.Spec.ID, agents.BudgetGet.Name, nil)
	var got api.BudgetResult
	if err != nil || json.Unmarshal(text, &got) != nil {
		return nil
	}
	own, all := string(budget.RunKey(run.Owner.UID, run.Spec.ID)), map[string]int64{}
	for _, b := range got.Budgets {
		if b.Account == own {
			all[b.Dimension] = b.Used
		}
	}
	return all
}

// serveAgain is how long the calls of an agent are refused before the next attempt to have them served.
const serveAgain = 100 * time.Millisecond

// serve has the agent's calls answered until the gate is gone or the run ends. kernel.Serve reads the
// channel while it can. In between calls are refused here; limits and deadlines hold meanwhile.
func (s *share) serve(calls *channel.Conn) {
	away := api.Failure(api.CodeBusy, "ask again with the same key", "cloved is away")
	refuse := func(context.Context, string, json.RawMessage) (json.RawMessage, error) { return nil, away }
	for s.ctx.Err() == nil {
		_ = s.kernel.Serve(s.ctx, s.run, calls.File()) // why it has ended changes nothing
		_ = calls.Send(channel.ToGate{Away: away})     // for what was read and not answered
		ctx, cancel := context.WithTimeout(s.ctx, serveAgain)
		err := calls.Serve(ctx, refuse)
		cancel()
		if err != nil {
			return
		}
	}
}

// watchedChannel is the channel of an agent whose answers the supervisor reads: it counts the refusals,
// and reports allowed calls to the run's shadow.
type watchedChannel struct {
	share        *share
	gate, served *channel.Conn

	mu    sync.Mutex              // guards the following
	calls map[uint64]channel.Call // that are not answered
}

// watch passes messages on between the gate and the channel that it returns, which is to be served in
// place of the gate's. Both end with the gate.
func (s *share) watch(gate *channel.Conn) (*channel.Conn, error) {
	served, inner, err := channel.Both()
	if err != nil {
		return nil, err
	}
	w := &watchedChannel{share: s, gate: gate, served: inner, calls: map[uint64]channel.Call{}}
	go w.up()
	go w.down()
	return served, nil
}

// up passes on what the gate asks.
func (w *watchedChannel) up() {
	defer w.served.Close()
	for {
		var m channel.FromGate
		if w.gate.Receive(&m) != nil {
			return
		}
		if m.Call != nil {
			w.enter(*m.Call)
		}
		if w.served.Send(m) != nil {
			return
		}
	}
}

// down passes on the answers.
func (w *watchedChannel) down() {
	for {
		var m channel.ToGate
		if w.served.Receive(&m) != nil {
			return
		}
		if m.Answer != nil {
			w.look(*m.Answer)
		}
		_ = w.gate.Send(m) // up notices that the gate is gone
	}
}

// enter notes a call for its answer. A gate that was taken over may ask more than may be in flight:
// these are refused.
func (w *watchedChannel) enter(c channel.Call) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if len(w.calls) < channel.MaxCalls {
		w.calls[c.Number] = c
	}
}

func (w *watchedChannel) look(a channel.Answer) {
	w.mu.Lock()
	call := w.calls[a.Number]
	delete(w.calls, a.Number)
	w.mu.Unlock()
	switch {
	case a.Error == nil:
		w.share.shadow.called(call.Method, call.Params, a.Result)
	case a.Error.Code == api.CodeDenied || a.Error.Code == api.CodeBudget:
		w.share.refusals.add()
	}
}

// meterEvery is how often the counters of the Linux kernel are read for a budget. A
// spent budget takes effect within a second and a half.
const meterEvery = 500 * time.Millisecond

// checkMeters refuses budgets of what this host does not count while the agent runs.
func checkMeters(spec agent.Spec, v2 bool) error {
	for _, text := range spec.Kernel.Budgets {
		limit, err := budget.ParseLimit(text)
		if err != nil {
			return err
		}
		if limit.Dimension == budget.WriteBytes && !v2 {
			return &agent.Error{Kind: agent.KindUnenforceable, Step: "--budget", Message: "write_bytes is counted on cgroup v2 only",
				Hint: "use --disk, which bounds what the agent may keep"}
		}
		if limit.Dimension == budget.NetBytes && spec.Network == agent.NetworkHost {
			return &agent.Error{Kind: agent.KindUnenforceable, Step: "--budget", Message: "net_bytes is not counted in the host's network",
				Hint: "use another --network"}
		}
	}
	return nil
}

// frozenFor is how long budgets have frozen the agent, in nanoseconds.
func (s *share) frozenFor(now int64) int64 {
	if s.paused {
		return s.stoodNS + now - s.pausedAt
	}
	return s.stoodNS
}

// meter sends readings that changed, if what they count is limited. It does not wait
// for the answer: the effect comes as a standing.
func (s *share) meter(read func() map[string]int64) {
	if len(s.metered) == 0 || s.metering != nil {
		return
	}
	totals := read()
	maps.DeleteFunc(totals, func(dimension string, total int64) bool {
		return !s.metered[dimension] || s.sent[dimension] == total
	})
	if len(totals) == 0 {
		return
	}
	answer := make(chan error, 1)
	s.metering = answer
	go func() { answer <- s.report(totals) }()
	s.sending = totals
}

// meterPatience bounds one report of readings.
const meterPatience = 10 * time.Second

func (s *share) report(totals map[string]int64) error {
	ctx, cancel := context.WithTimeout(s.ctx, meterPatience)
	defer cancel()
	return s.kernel.Meter(ctx, s.run, s.start, totals)
}

// onMetered notes which readings have arrived. The others are sent again.
func (s *share) onMetered(err error) {
	s.metering = nil
	if err == nil {
		maps.Copy(s.sent, s.sending)
	}
}

// meterLast reports the last readings, so that the account has all of the run. nil has none.
func (s *share) meterLast(read func() map[string]int64) {
	if s != nil && len(s.metered) > 0 {
		_ = s.report(read()) // without cloved the account misses the last half second
	}
}

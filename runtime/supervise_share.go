package runtime

import (
	"cmp"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/egress"
	"clove.run/clove/egress/host"
	"clove.run/clove/internal/boottime"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/store"
)

// onStanding does what a change of grants and budgets means for the run.
func (s *supervisor) onStanding(now api.Standing) {
	s.share.notify(now.Notices)
	s.share.warn(now.Notices, s.streams.Warned)
	s.share.metered = map[string]bool{}
	for _, dimension := range now.Metered {
		s.share.metered[dimension] = true
	}
	s.share.callouts.spent(now.Spent)
	s.share.showCalls(now.Asking)
	s.share.net = now.Net
	s.grantNetwork()
	var pause *api.Budget
	for i, b := range now.Spent {
		switch b.AtEnd {
		case "end":
			peak := b.Peak
			hit := agent.LimitHit{Name: b.Dimension, Value: *b.Granted, Peak: &peak, Used: b.Used, Wanted: b.Wanted, Period: b.Period}
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
	if s.spec.Kernel.People(agent.AskBudget) > 0 {
		s.share.askMore(pause)
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
	s.share.force.set(granted, rules)
	if shadow, err := s.share.shadow.rules(granted); err == nil { // the rules of before go on otherwise
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
	notePaused(s.paths, s.spec.ID, spent)
	if pause && s.streams.PausedFor != nil {
		s.streams.PausedFor(*spent, timeoutAt(s.spec.Limits.WallClock, s.began))
	}
}

// spent refuses to pause or resume an agent that its budget has paused: more of the budget lets
// it go on, and nothing else does.
func (s *supervisor) spent(step string) error {
	if s.share == nil || !s.share.paused {
		return nil
	}
	return &agent.Error{Kind: agent.KindConflict, Step: step, Message: s.spec.Name + " is paused until it has more of a budget",
		Hint: "`clove budget show` says of which, `clove budget raise` gives more"}
}

// readMeters returns what the Linux kernel has counted since the agent's start, by
// dimension. A figure that is missing stays absent.
func (s *supervisor) readMeters() map[string]int64 {
	totals := map[string]int64{}
	stats, err := s.group.Stats()
	if err != nil || s.began == 0 {
		return totals // the cgroup is going: so is the agent
	}
	if stats = stats.Since(launchUse(s.seen.spent)); stats.CPU != nil {
		totals[string(budget.CPU)] = stats.CPU.Milliseconds()
	}
	if stats.IOWriteBytes != nil {
		totals[string(budget.WriteBytes)] = *stats.IOWriteBytes
	}
	totals[string(budget.Wall)] = time.Duration(boottime.NowNS() - s.began - s.share.frozenFor(boottime.NowNS())).Milliseconds()
	if s.gate != nil {
		t := s.gate.Totals()
		totals[string(budget.NetBytes)] = t.RxBytes + t.TxBytes
	}
	return totals
}

// notePaused stores for lists of runs that a budget pauses the agent; nil: none does. If
// that fails, the lists alone are wrong, until the next pause or start.
func notePaused(paths Paths, id agent.ID, spent *api.Budget) {
	what, detail := agent.RunResumed, "the budget has more"
	if spent != nil {
		what, detail = agent.RunPaused, "nothing is left of "+budget.Dimension(spent.Dimension).Title()+" in "+spent.Account
	}
	_ = paths.withStore(func(st *store.Store) error {
		_, err := st.Amend(id, what, detail, func(run *agent.Run) { run.SetPaused(spent != nil) })
		return err
	})
}

// timeoutAt is when the wall clock ends an agent that began then; zero: never.
func timeoutAt(wallClock time.Duration, began int64) time.Time {
	if wallClock == 0 {
		return time.Time{}
	}
	return time.Now().Add(wallClock - time.Duration(boottime.NowNS()-began))
}

// onRefusal does what the run says of refusals.
func (s *supervisor) onRefusal() {
	what, after, err := s.spec.Kernel.Denial()
	switch {
	case err != nil || s.refusals.count.Load() < int64(after):
	case what == "end":
		s.end(causePolicy, 0)
	case what == "pause":
		_ = s.freezer.pause(s.seen.cause != causeNone) // an error: it is paused already, or ends
	}
}

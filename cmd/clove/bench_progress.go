package main

import (
	"fmt"
	"strings"
	"time"

	results "clove.run/clove/bench"
)

// progress shows a bar on a terminal, and a line for each attempt elsewhere.
type progress struct {
	screen   *screen
	terminal bool
	began    time.Time
	total    int
	done     map[results.Outcome]int
}

func newProgress(s *screen, total int) *progress {
	return &progress{screen: s, terminal: isTerminal(s.err), began: time.Now(), total: total, done: map[results.Outcome]int{}}
}

// barWidth is that of the bar alone.
const barWidth = 30

// show is called after each attempt.
func (s *progress) show(r results.Result) {
	s.done[r.Outcome]++
	n := s.done[results.Passed] + s.done[results.Failed] + s.done[results.Infrastructure]
	if s.terminal {
		full := barWidth * n / max(1, s.total)
		left := time.Duration(float64(time.Since(s.began)) / float64(n) * float64(s.total-n)).Round(time.Second)
		fmt.Fprintf(s.screen.err, "\r\x1b[K[%s%s] %d/%d  %d passed, %d failed, %d without a result  %s left", strings.Repeat("#", full), strings.Repeat(".", barWidth-full),
			n, s.total, s.done[results.Passed], s.done[results.Failed], s.done[results.Infrastructure], left)
		return
	}
	text := fmt.Sprintf("%d/%d %s: %s", n, s.total, r.Attempt, r.Outcome)
	if r.Cause != "" {
		text += " (" + r.Cause + ")"
	}
	s.screen.say("bench", cyan, text)
}

func (s *progress) end() {
	if s.terminal {
		fmt.Fprintln(s.screen.err)
	}
}

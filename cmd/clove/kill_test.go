package main

import (
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// BUDGET and POLICY are sent as clove's own, with their reason; other signals by their numbers, without one.
func TestKillSends(t *testing.T) {
	for line, want := range map[string]api.SignalParams{
		"kill one":                               {Signal: 9},
		"kill -s USR1 one":                       {Signal: 10},
		"kill -s BUDGET one":                     {Budget: true},
		"kill -s BUDGET --reason too-dear one":   {Budget: true, Reason: "too-dear"},
		"kill -s POLICY --reason not-so one two": {Policy: true, Reason: "not-so"},
	} {
		b := newBench(t)
		f := b.cloved()
		f.answer(methods.RunSignal.Name, api.Nothing{})
		status, stdout, stderr := b.clove(strings.Fields(line)...)
		names := "one\n"
		if strings.HasSuffix(line, " two") {
			names += "two\n"
		}
		if status != 0 || stdout != names || stderr != "" || f.calls(methods.RunSignal.Name) != strings.Count(names, "\n") {
			t.Errorf("%s: %d, %q, %s", line, status, stdout, stderr)
		}
		var asked api.SignalParams
		f.heard(methods.RunSignal.Name, &asked)
		if want.Run = asked.Run; asked != want {
			t.Errorf("%s: %+v", line, asked)
		}
	}
	for line, says := range map[string]string{
		"kill --reason why one": "reason", "kill -s TERM --reason why one": "reason", "kill -s BUDGETS one": "not a signal",
		"kill -s BUDGET": "no run is named",
	} {
		b := newBench(t)
		f := b.cloved()
		if status, stdout, stderr := b.clove(strings.Fields(line)...); status != exitFailed || stdout != "" || !strings.Contains(stderr, says) || !strings.Contains(stderr, "hint:") || f.calls(methods.RunSignal.Name) != 0 {
			t.Errorf("%s: %d, %q, %s", line, status, stdout, stderr)
		}
	}
}

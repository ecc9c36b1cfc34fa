package broker

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"golang.org/x/time/rate"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

// askFor asks for n different names of length bytes below the zone, and returns how many of them
// came to the name server, with their bytes.
func (f *fixture) askFor(n, length int, zone string) (asked, bytes int) {
	before := len(f.resolver.questions())
	for i := range n {
		name := fmt.Sprintf("n%d.%s", i, zone)
		for len(name) < length {
			name = strings.Repeat("x", min(60, max(length-len(name)-1, 1))) + "." + name
		}
		f.gate.lookup(name, dnsmsg.TypeA)
	}
	for _, question := range f.resolver.questions()[before:] {
		asked++
		bytes += len(question)
	}
	return asked, bytes
}

// 150 questions carry about 30 000 bytes out: the control. With a limit of bytes they are
// counted, and those that it does not hold are not asked; the answer counts as well.
func TestQuestionsCount(t *testing.T) {
	t.Parallel()
	for limit, all := range map[int64]bool{0: true, 5000: false} {
		f := serve(t, Config{Rules: rulesOf(t, "*.evil.example", "*.exfil.example"), Limits: wire.Limits{Bytes: limit}})
		f.resolver.set("api.exfil.example", "93.184.216.34")
		f.broker.names.bytes.SetLimit(rate.Inf) // the subject of another test
		asked, bytes := f.askFor(150, 199, "evil.example")
		totals := f.broker.Totals()
		if (asked == 150) != all || all && bytes < 29_000 || !all && bytes > 5000 || totals.TxBytes < int64(bytes) || totals.RxBytes == 0 && !all {
			t.Errorf("limit %d: %d questions with %d bytes, counted %d and %d", limit, asked, bytes, totals.TxBytes, totals.RxBytes)
		}
		if limit > 0 && (totals.TxBytes+totals.RxBytes > limit || len(totals.Denials) == 0 || totals.Denials[0].Hint != "raise --net-bytes") {
			t.Errorf("limit %d: %+v", limit, totals)
		}
		if limit > 0 {
			continue
		}
		answer := f.gate.lookup("api.exfil.example", dnsmsg.TypeA)
		after := f.broker.Totals()
		if question := dnsmsg.QuestionBytes("api.exfil.example"); after.TxBytes-totals.TxBytes != question || after.RxBytes-totals.RxBytes != int64(len(answer.Message)) || answer.Bytes != question+int64(len(answer.Message)) {
			t.Errorf("counted %d and %d, answer %d, said %d", after.TxBytes-totals.TxBytes, after.RxBytes-totals.RxBytes, len(answer.Message), answer.Bytes)
		}
		if d := f.last(); d.TxBytes != dnsmsg.QuestionBytes("api.exfil.example") || d.RxBytes != int64(len(answer.Message)) {
			t.Errorf("%+v", d)
		}
	}
}

// Names that no rule spells out are bounded in number, bytes and pace; a name with a rule of its
// own is the control, and time gives more of them.
func TestNamesOfTheAgentsChoiceAreBounded(t *testing.T) {
	t.Parallel()
	const spelled = "api.evil.example"
	for what, row := range map[string]struct {
		ask    func(f *fixture) int
		most   int
		reason string
	}{
		"names": {func(f *fixture) int { asked, _ := f.askFor(wideNames+50, 0, "evil.example"); return asked }, wideNames, "more than 500 different names in an hour under *.evil.example"},
		"bytes": {func(f *fixture) int { _, bytes := f.askFor(150, 199, "evil.example"); return bytes }, wideNameBytes, "different names of more than 16384 bytes in an hour under *.evil.example"},
		"pace": {func(f *fixture) int {
			for range wideQuestionsBurst + 50 {
				f.gate.lookup("same.evil.example", dnsmsg.TypeA)
			}
			return len(f.resolver.questions())
		}, wideQuestionsBurst, "more than 100 questions a second under *.evil.example"},
	} {
		f := serve(t, Config{Rules: rulesOf(t, "*.evil.example", spelled)})
		if got := row.ask(f); got > row.most || got < row.most-200 {
			t.Errorf("%s: %d, at most %d", what, got, row.most)
		}
		d := f.last()
		if d.Outcome != OutcomeDenied || d.Reason != ReasonNames || d.Rule != "*.evil.example" || d.Detail != row.reason || !strings.Contains(d.Hint, "--allow "+d.Name) {
			t.Errorf("%s: %+v", what, d)
		}
		if f.gate.lookup(spelled, dnsmsg.TypeA); f.last().Outcome == OutcomeDenied {
			t.Errorf("%s: a name that is spelled out: %+v", what, f.last())
		}
		f.clock.advance(time.Hour)
		if f.gate.lookup("later.evil.example", dnsmsg.TypeA); f.last().Outcome == OutcomeDenied {
			t.Errorf("%s: an hour later: %+v", what, f.last())
		}
	}
	// `public` spells out none either.
	f := serve(t, Config{Rules: rulesOf(t, "public")})
	if asked, _ := f.askFor(wideNames+50, 0, "any.example"); asked != wideNames || f.last().Rule != "public" {
		t.Errorf("under public: %d, %+v", asked, f.last())
	}
}

package main

import (
	"slices"
	"strings"
	"testing"
)

// rounds returns samples with one value in each round.
func rounds(values ...float64) taken {
	t := make(taken, len(values))
	for i, v := range values {
		t[i] = []float64{v}
	}
	return t
}

func figureOf(t *testing.T, figures []figure, peer string) figure {
	t.Helper()
	i := slices.IndexFunc(figures, func(f figure) bool { return f.Peer == peer })
	if i < 0 {
		t.Fatalf("no figure of %s", peer)
	}
	return figures[i]
}

// The time that a connection takes beyond the direct one is compared, with the proxy that adds
// the least.
func TestLatenciesAreComparedByWhatIsAdded(t *testing.T) {
	figures := judge(errand{what: whatAddress, unit: unitLatency}, samples{whatAddress: {
		peerDirect: rounds(100, 100, 1000), peerClove: rounds(150, 150, 1050),
		peerTinyproxy: rounds(300, 300, 1200), peerSquid: rounds(200, 200, 1100),
	}})
	clove := figureOf(t, figures, peerClove)
	if clove.Base != peerSquid || clove.Ratio.Medians != 0.5 || clove.Ratio.High != 0.5 {
		t.Errorf("%+v to %s, not half of squid", clove.Ratio, clove.Base)
	}
	if clove.Added.P50 != 50 || clove.Added.P99 != 50 {
		t.Errorf("added %+v, not 50", clove.Added)
	}
	if direct := figureOf(t, figures, peerDirect); direct.Added != nil || direct.Ratio != nil {
		t.Errorf("the direct connection is compared: %+v", direct)
	}
}

// The better proxy is the one that transfers more bytes in a second.
func TestRatesAreComparedWithTheFasterProxy(t *testing.T) {
	figures := judge(errand{what: whatOne, unit: unitRate}, samples{whatOne: {
		peerDirect: rounds(4000), peerClove: rounds(3000), peerTinyproxy: rounds(500), peerSquid: rounds(1000)}})
	if clove := figureOf(t, figures, peerClove); clove.Base != peerSquid || clove.Ratio.Medians != 3 || clove.Added != nil {
		t.Errorf("%+v to %s", clove.Ratio, clove.Base)
	}
	if names := []string{figures[0].Peer, figures[1].Peer}; !slices.Equal(names, []string{peerDirect, peerClove}) {
		t.Errorf("begins with %v", names)
	}
}

func TestWithoutProxiesNothingIsCompared(t *testing.T) {
	figures := judge(errand{what: whatAnswers, unit: unitAnswers}, samples{whatAnswers: {peerDirect: rounds(9), peerClove: rounds(3)}})
	if clove := figureOf(t, figures, peerClove); len(figures) != 2 || clove.Ratio != nil || clove.Base != "" {
		t.Errorf("%+v", figures)
	}
}

// For a denial there is no direct connection: its whole time counts as added.
func TestADenialCountsWhole(t *testing.T) {
	figures := judge(errand{what: whatDenied, unit: unitLatency}, samples{whatDenied: {peerClove: rounds(30), peerSquid: rounds(60)}})
	if clove := figureOf(t, figures, peerClove); clove.Added.P50 != 30 || clove.Ratio == nil || clove.Ratio.Medians != 0.5 {
		t.Errorf("%+v, %v", clove.Added, clove.Ratio)
	}
}

func TestWaysDoWhatMakesSense(t *testing.T) {
	direct, gated, proxy := &way{}, &way{gated: true}, &way{proxy: true}
	for _, c := range []struct {
		name string
		does order
		want []*way
	}{
		{"connections", order{Times: 1}, []*way{direct, gated, proxy}},
		{"denials", order{Times: 1, Denied: true}, []*way{gated, proxy}},
		{"questions", order{Questions: 1}, []*way{direct, gated}},
	} {
		for _, w := range []*way{direct, gated, proxy} {
			if got := w.can(c.does); got != slices.Contains(c.want, w) {
				t.Errorf("%s: %+v says %t", c.name, w, got)
			}
		}
	}
}

// Otherwise the gate's limit of queries would be measured.
func TestQuestionsOfARoundStayBelowTheGatesPace(t *testing.T) {
	const burst, perSecond = 400, 200
	questions := 0
	for _, e := range errands {
		questions += e.does.Questions
		if e.does.Lookup {
			questions += e.does.Times
		}
	}
	if questions > burst || questions > 2*perSecond {
		t.Errorf("%d questions in each round", questions)
	}
}

// If one of the three lacked a rule, their work would differ.
func TestEachProxyHasTheSameRules(t *testing.T) {
	for name, text := range map[string]string{"tinyproxy": tinyproxyConfig("/dir") + tinyproxyFilter, "squid": squidConfig("/dir")} {
		for _, want := range []string{"bench", "example", portByAddress, portByName, "127.0.0.1"} {
			if !strings.Contains(text, want) {
				t.Errorf("%s's configuration lacks %s", name, want)
			}
		}
		if !strings.Contains(strings.ReplaceAll(text, `\.`, "."), serverAddress) {
			t.Errorf("%s's rules lack the server", name)
		}
	}
}

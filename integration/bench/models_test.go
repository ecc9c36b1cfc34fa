package main

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
)

// clientOf asks a provider that a test serves.
func clientOf(t *testing.T, provider http.HandlerFunc) *asker {
	t.Helper()
	server := httptest.NewServer(provider)
	a := newAsker(server.URL + "/v1")
	t.Cleanup(func() {
		a.drop()
		a.client.CloseIdleConnections()
		server.Close()
	})
	return a
}

// Each round's direct connection is subtracted from it, and the rest is compared with the
// gateway's.
func TestFirstTokensAreComparedByWhatIsAdded(t *testing.T) {
	figures := judgeModels(modelErrand{what: whatFirstToken, unit: unitMS, aim: "an aim"}, samples{whatFirstToken: {
		peerDirect: rounds(1, 1, 11), peerNginx: rounds(1.5, 1.5, 11.5), peerGateway: rounds(5, 5, 15), peerClove: rounds(2, 2, 12),
	}})
	clove := figureOf(t, figures, peerClove)
	if clove.Added.P50 != 1 || clove.Added.P99 != 1 || clove.Ratio.Medians != 0.25 || clove.Ratio.High != 0.25 || clove.Aim != "an aim" {
		t.Errorf("%+v, %+v, %+v", clove, clove.Added, clove.Ratio)
	}
	if direct := figureOf(t, figures, peerDirect); direct.Added != nil || direct.Ratio != nil || direct.Values.P50 != 1 {
		t.Errorf("the direct connection is compared: %+v", direct)
	}
	if gateway := figureOf(t, figures, peerGateway); gateway.Added.P50 != 4 || gateway.Ratio != nil || gateway.Aim != "" {
		t.Errorf("%+v", gateway)
	}
}

func TestRatesAreComparedAsTheyAre(t *testing.T) {
	figures := judgeModels(modelErrand{what: whatTokenRate, unit: unitAnswers}, samples{whatTokenRate: {
		peerDirect: rounds(400, 400), peerGateway: rounds(100, 200), peerClove: rounds(300, 300)}})
	if clove := figureOf(t, figures, peerClove); clove.Added != nil || clove.Ratio.Medians != 3 || clove.Ratio.Low != 1.5 || clove.Ratio.High != 3 {
		t.Errorf("%+v", clove.Ratio)
	}
	if direct := figureOf(t, figures, peerDirect); direct.Ratio.Medians != 4 {
		t.Errorf("%+v", direct.Ratio)
	}
	if figures := judgeModels(modelErrand{what: whatTokenRate, unit: unitAnswers}, samples{whatTokenRate: {peerClove: rounds(300)}}); len(figures) != 1 || figures[0].Ratio != nil {
		t.Errorf("without the gateway: %+v", figures)
	}
}

func TestValuesOfModelErrands(t *testing.T) {
	said := report{Values: []float64{1, 2, 3, 4}, Tokens: 400, Seconds: 2}
	for _, c := range []struct {
		e    modelErrand
		want []float64
	}{
		{modelErrand{unit: unitMS, does: modelOrder{Stream: true}}, said.Values},
		{modelErrand{unit: unitAnswers, does: modelOrder{Stream: true}}, []float64{200}},
		{modelErrand{unit: unitAnswers}, []float64{2}},
	} {
		if got := c.e.values(said); !slices.Equal(got, c.want) {
			t.Errorf("%+v: %v", c.e, got)
		}
	}
}

// A stream costs what the processes have grown by, and both are compared with the gateway.
func TestMemoryOfModels(t *testing.T) {
	figures := memoryFigures([]heldMemory{
		{peer: peerGateway, byProgram: map[string]float64{"node": 102400}, idle: 102400, open: 102400 + 64*heldStreams},
		{peer: peerClove, byProgram: map[string]float64{"cloved": 20480, "clove-models": 10240}, idle: 30720, open: 30720 + 16*heldStreams},
	})
	var got []string
	for _, f := range figures {
		got = append(got, strings.Join([]string{f.What, f.Peer, short(f.Values.P50), f.Unit, f.ratioText()}, "; "))
	}
	want := []string{
		whatProcesses + "; Portkey; 100; MiB; ",
		whatProcesses + "; clove; 30.0; MiB; 0.30 (0.30 to 0.30) to Portkey",
		whatProcesses + ";   of that, clove-models; 10.0; MiB; ",
		whatProcesses + ";   of that, cloved; 20.0; MiB; ",
		whatOpenStream + "; Portkey; 64.0; KiB; ",
		whatOpenStream + "; clove; 16.0; KiB; 0.25 (0.25 to 0.25) to Portkey",
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s", strings.Join(got, "\n"))
	}
}

// Each order is carried out as it says.
func TestTheClientOfModelsObeys(t *testing.T) {
	a := clientOf(t, answerModel)
	for _, c := range []struct {
		name   string
		order  modelOrder
		tokens int
	}{
		{"one stream", modelOrder{Model: modelSteady, Stream: true, Callers: 1, Turns: 2}, 20},
		{"many streams", modelOrder{Model: modelSwift, Stream: true, Callers: 8, Turns: 2}, 3200},
		{"calls", modelOrder{Model: modelSwift, Callers: 4, Turns: 3}, 0},
		{"open streams", modelOrder{Model: modelHeld, Stream: true, Callers: 4, Turns: 1, Hold: true}, 0},
		{"their end", modelOrder{}, 0},
	} {
		r := a.obey(c.order)
		if want := c.order.Callers * c.order.Turns; r.Error != "" || len(r.Values) != want || r.Tokens != c.tokens || r.Seconds <= 0 {
			t.Errorf("%s: %d answers, %d tokens, %s", c.name, len(r.Values), r.Tokens, r.Error)
		}
		if open := len(a.held); c.order.Hold && open != c.order.Callers || !c.order.Hold && open != 0 {
			t.Errorf("%s: %d streams are open", c.name, open)
		}
	}
}

// The provider's own part of the wait is not counted.
func TestTheProvidersPartIsSubtracted(t *testing.T) {
	const theirs = 3_600_000_000 // an hour, in microseconds
	a := clientOf(t, func(w http.ResponseWriter, _ *http.Request) {
		w.Write([]byte(`data: {"choices":[{"delta":{"content":"3600000000"}}]}` + "\n\n"))
	})
	r := a.obey(modelOrder{Model: modelHeld, Stream: true, Callers: 1, Turns: 1, Hold: true})
	if r.Error != "" || len(r.Values) != 1 || r.Values[0] < -theirs/1000 || r.Values[0] > -theirs/1000+600_000 {
		t.Errorf("%+v", r)
	}
}

// An answer that is not what was asked for is no sample.
func TestWrongAnswersOfModelsAreErrors(t *testing.T) {
	event := `data: {"choices":[{"delta":{"content":"5"}}]}` + "\n\n"
	for name, c := range map[string]struct {
		answer string
		stream bool
		want   string
	}{
		"a stream without a token":   {"data: " + endOfStream + "\n\n", true, "no token"},
		"a token without a time":     {strings.Replace(event, "5", "x", 1) + event, true, "invalid syntax"},
		"too few tokens":             {event + "data: " + endOfStream + "\n\n", true, "1 of 200 tokens"},
		"a stream without an end":    {strings.Repeat(event, 200), true, "200 of 200 tokens"},
		"an answer without contents": {"{}", false, "the answer is"},
	} {
		a := clientOf(t, func(w http.ResponseWriter, _ *http.Request) { w.Write([]byte(c.answer)) })
		if r := a.obey(modelOrder{Model: modelSwift, Stream: c.stream, Callers: 1, Turns: 1}); !strings.Contains(r.Error, c.want) {
			t.Errorf("%s: %q", name, r.Error)
		}
	}
	if r := clientOf(t, answerModel).obey(modelOrder{Model: "none", Callers: 1, Turns: 1}); !strings.Contains(r.Error, "status 400") {
		t.Errorf("%q", r.Error)
	}
}

// clove and the peers lead to the same provider.
func TestAllWaysLeadToTheProvider(t *testing.T) {
	for name, text := range map[string]string{"nginx": nginxConfig, "clove": modelsFile} {
		if !strings.Contains(text, providerAddress) {
			t.Errorf("%s does not lead to %s", name, providerAddress)
		}
	}
	for name := range paces {
		if !strings.Contains(modelsFile, name) {
			t.Errorf("clove has no model %s", name)
		}
	}
}

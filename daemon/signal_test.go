package daemon

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

// A request means one signal of the Linux kernel's, or POLICY with a reason of one line.
func TestWhichSignalsAreSent(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		api.SignalParams
		ok bool
	}{
		{api.SignalParams{Signal: 1}, true},
		{api.SignalParams{Signal: 64}, true},
		{api.SignalParams{Policy: true}, true},
		{api.SignalParams{Policy: true, Reason: "why"}, true},
		{api.SignalParams{}, false},
		{api.SignalParams{Signal: 65}, false},
		{api.SignalParams{Signal: 9, Policy: true}, false},
		{api.SignalParams{Signal: 9, Reason: "why"}, false},
		{api.SignalParams{Policy: true, Reason: "a\nb"}, false},
		{api.SignalParams{Policy: true, Reason: strings.Repeat("x", agent.ReasonMost+1)}, false},
	} {
		if err := checkSignal(row.SignalParams); (err == nil) != row.ok {
			t.Errorf("%+v: %v", row.SignalParams, err)
		}
	}
	for params, want := range map[string]string{`{"run":"a","policy":true,"reason":"why"}`: "signal POLICY: why", `{"policy":true}`: "signal POLICY", `{"signal":9}`: "", `{`: "", `{"policy":true,"reason":"a\nb"}`: ""} {
		p, err := methods.RunSignal.Decode([]byte(params))
		if got := auditText(parameters{value: p, wrong: err}); got != want {
			t.Errorf("%s: %q", params, got)
		}
	}
}

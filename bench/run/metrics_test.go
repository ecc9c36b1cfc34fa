package run

import (
	"bytes"
	"strings"
	"testing"

	"clove.run/clove/bench"
)

// FuzzMetrics reads lines as an agent may write them: no sum is negative, and what clove's
// service counted stays as it is.
func FuzzMetrics(f *testing.F) {
	for _, seed := range []string{"", "\n", "null", `{"steps":1}` + "\n" + `{"steps":2}`, `{"tokens_in":9223372036854775807}`, `{"steps":1e3}`, `{"steps":-1}`, `{"steps":1}{"steps":1}`,
		strings.Repeat(`{"tokens_in":1099511627776,"tokens_out":1099511627776}`+"\n", 300), strings.Repeat("[", 20000), "\x00\xff{}", `{"steps":[1]}`} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		if len(text) > metricsMost {
			return
		}
		var m bench.Metrics
		sumMetrics(text, &m)
		for name, n := range map[string]*int64{"steps": m.Steps, "tool calls": m.ToolCalls, "retries": m.Retries, "tokens": m.Tokens, "calls": m.ModelCalls, "cost": m.CostMicros} {
			if n != nil && *n < 0 {
				t.Errorf("%s: %d", name, *n)
			}
		}
		if m.Unreadable > bytes.Count(text, []byte("\n"))+1 || m.Own != (m.Steps != nil) {
			t.Errorf("%+v", m)
		}
		counted := bench.Metrics{ModelCalls: number(3), Tokens: number(4)}
		if sumMetrics(text, &counted); *counted.ModelCalls != 3 || *counted.Tokens != 4 || counted.Own {
			t.Errorf("%+v", counted)
		}
	})
}

// As many of the largest figures as fit into what is read do not overflow.
func TestMetricsDoNotOverflow(t *testing.T) {
	t.Parallel()
	line := `{"tokens_in":1099511627776,"tokens_out":1099511627776,"tokens_cached":1099511627776}` + "\n"
	var m bench.Metrics
	sumMetrics(bytes.Repeat([]byte(line), metricsMost/len(line)), &m)
	if m.Tokens == nil || *m.Tokens < figureMost || m.Unreadable != 0 {
		t.Errorf("%+v", m)
	}
	// The control: one more than that is no line.
	sumMetrics([]byte(`{"steps":1099511627777}`), &m)
	if m.Unreadable != 1 {
		t.Errorf("%+v", m)
	}
}

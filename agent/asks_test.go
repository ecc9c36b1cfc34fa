package agent

import (
	"strings"
	"testing"
)

// Questions about a budget need one that pauses the run. The controls are those with one.
func TestQuestionsAboutABudgetNeedOne(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		k    Kernel
		want string // empty: it is sound
	}{
		{Kernel{Budgets: []string{"reviews=3"}, AtEnd: "pause"}, ""},
		{Kernel{Budgets: []string{"children=3", "cpu_ms=90s"}, AtEnd: "pause"}, ""},
		{Kernel{AtEnd: "pause"}, "has none that pauses it"},
		{Kernel{Budgets: []string{"children=3"}, AtEnd: "pause"}, "has none that pauses it"},
		{Kernel{Budgets: []string{"reviews=3"}}, "at its end it does not"},
		{Kernel{Budgets: []string{"reviews=3"}, AtEnd: "refuse"}, "at its end it does not"},
	} {
		row.k.Asks = []string{AskBudget}
		err := checkKernel(Spec{Network: NetworkNone, Kernel: row.k})
		if row.want == "" && err != nil || row.want != "" && (err == nil || !strings.Contains(err.Error(), row.want)) {
			t.Errorf("%+v: %v", row.k, err)
		}
	}
}

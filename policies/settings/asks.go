package settings

import (
	"cmp"
	"slices"
	"strings"

	"clove.run/clove/agent"
)

func readAsk(r *Reader, text string) error {
	kind, people, sound := agent.ParseAsk(text)
	if !sound {
		return Invalid(Asks, "use "+strings.Join(agent.Asks, " or ")+", or "+agent.Asks[0]+"=2 where two users must say yes", "%.64q is nothing that people are asked about", text)
	}
	if r.Spec.Kernel.People(kind) < people { // of several the most counts
		r.Spec.Kernel.Asks = append(slices.DeleteFunc(r.Spec.Kernel.Asks, func(have string) bool {
			about, _, _ := agent.ParseAsk(have)
			return about == kind
		}), text)
	}
	return nil
}

// widerAsks: a question lets people allow what is refused else. One about tools restricts what a grant allows: without it
// the run that may call tools is the wider one.
func widerAsks(base, wide agent.Spec) []Difference {
	extra := beyond(base.Kernel.Asks, wide.Kernel.Asks, func(have []string, ask string) bool {
		kind, people, _ := agent.ParseAsk(ask)
		least := agent.Kernel{Asks: have}.People(kind)
		return kind == agent.AskTool || least > 0 && people >= least
	})
	unasked := wide.Kernel.HasTools() && wide.Kernel.People(agent.AskTool) < base.Kernel.People(agent.AskTool)
	if len(extra) > 0 || !unasked {
		return extra
	}
	return more(true, list(base.Kernel.Asks), cmp.Or(list(wide.Kernel.Asks), "none"))
}

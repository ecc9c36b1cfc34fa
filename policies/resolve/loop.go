package resolve

import (
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/loop/order"
	"clove.run/clove/policies/settings"
)

// RunLoop makes the request one for clove's own agent loop: its program, which is at this path of
// the host, is shown read-only and is the command, with the order as its arguments. The order's
// model becomes one that the run may call.
func (r *Request) RunLoop(program string, o order.Order) error {
	if err := o.Check(); err != nil {
		return invalid("", `clove ask --model NAME "PROMPT"`, "%s", err)
	}
	if !filepath.IsAbs(program) || strings.Contains(program, ":") {
		return invalid("", "install clove in a directory without a colon in its name", "cannot show %q to an agent", program)
	}
	r.Script, r.Args = "", append([]string{order.Program}, o.Args()...)
	if r.Values == nil {
		r.Values = settings.Values{}
	}
	r.Add(settings.Volume, program+":"+order.Program+":ro")
	if !slices.ContainsFunc(r.Values[settings.Model], func(text string) bool { return agent.NamedModel(text) == o.Model }) {
		r.Add(settings.Model, o.Model)
	}
	return nil
}

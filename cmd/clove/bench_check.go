package main

import (
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	results "clove.run/clove/bench"
	"clove.run/clove/bench/machine"
)

// check says what of this machine makes figures vary.
func (p benchVerbs) check(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	m, noise := machine.Describe(len(h.CPUs)), machine.Measure("now")
	quiet := machine.Quiet(noise)
	if err := p.printList(c, append(slices.Clone(m.Findings), results.Finding{Name: "noise of the processor", Value: percent(noise.Spin), Quiet: quiet},
		results.Finding{Name: "noise of memory", Value: percent(noise.Memory), Quiet: quiet})); err != nil {
		return err
	}
	if c.Bool(flagQuietHost) {
		return requireQuiet(m, noise)
	}
	return nil
}

// requireQuiet is one error with all that is not quiet.
func requireQuiet(m results.Machine, noise results.Noise) error {
	var loud, hints []string
	for _, f := range m.Findings {
		if !f.Quiet {
			loud, hints = append(loud, f.Name+" ("+f.Value+")"), append(hints, f.Hint)
		}
	}
	if !machine.Quiet(noise) {
		loud = append(loud, "noise ("+percent(noise.Spin)+" of the processor, "+percent(noise.Memory)+" of memory)")
		hints = append(hints, "end what else runs here")
	}
	if len(loud) == 0 {
		return nil
	}
	return &agent.Error{Kind: agent.KindUnenforceable, Step: "--" + flagQuietHost, Message: "this machine makes figures vary: " + strings.Join(loud, ", "), Hint: strings.Join(hints, "; ")}
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

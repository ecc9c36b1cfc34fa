package main

import (
	"fmt"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	results "clove.run/clove/bench"
	"clove.run/clove/bench/machine"
)

// benchCheck says what of this machine makes figures vary.
func (p benchVerbs) check(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	m, noise := machine.Describe(len(h.CPUs)), machine.Measure("now")
	rows := [][]string{{"SETTING", "VALUE", "QUIET", "HINT"}}
	for _, f := range m.Findings {
		rows = append(rows, []string{f.Name, f.Value, yesOrNo(f.Quiet), f.Hint})
	}
	rows = append(rows, []string{"noise of the processor", percent(noise.Spin), yesOrNo(machine.Quiet(noise)), ""}, []string{"noise of memory", percent(noise.Memory), yesOrNo(machine.Quiet(noise)), ""})
	if err := printTable(p.out, rows); err != nil {
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

func yesOrNo(yes bool) string {
	if yes {
		return "yes"
	}
	return "no"
}

func percent(x float64) string { return fmt.Sprintf("%.1f %%", 100*x) }

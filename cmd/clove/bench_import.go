package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/bench/harbor"
)

// importTasks makes a suite of tasks in another system's format. With several tasks, those that
// are refused keep the others from being imported unless --partly says otherwise.
func (p benchVerbs) importTasks(c *cli.Context) error {
	if system := c.Args().Get(1); system != "harbor" {
		return &agent.Error{Kind: agent.KindInvalid, Step: "import", Message: fmt.Sprintf("%.64q is no format of tasks", system), Hint: "write clove bench import harbor DIR"}
	}
	h, err := p.host()
	if err != nil {
		return err
	}
	o, err := importOptions(c, h.Absolute)
	if err != nil {
		return err
	}
	dir := h.Absolute(c.Args().Get(2))
	s, refused, err := harbor.Read(dir, o)
	if err != nil {
		return err
	}
	for _, r := range refused {
		p.say("bench", red, r.Task+": "+r.Why.Error())
	}
	if s.Tasks() == 0 || len(refused) > 0 && !c.Bool(flagPartly) {
		return &agent.Error{Kind: agent.KindInvalid, Step: "import", Message: fmt.Sprintf("%d of %d tasks cannot be translated", len(refused), len(refused)+s.Tasks()),
			Hint: "--" + flagPartly + " imports the others"}
	}
	to := h.Absolute(cmp.Or(c.String(flagTo), filepath.Base(dir)+"-suite"))
	if err := s.Write(to); err != nil {
		return err
	}
	p.say("bench", cyan, fmt.Sprintf("%d tasks imported, %d refused", s.Tasks(), len(refused)))
	_, err = fmt.Fprintln(p.out, to)
	return err
}

// importOptions reads the folders that replace images, and which phases have a network.
func importOptions(c *cli.Context, absolute func(string) string) (harbor.Options, error) {
	o := harbor.Options{Rootfs: map[string]string{}, Base: c.StringSlice(flagBase), Network: map[string]string{}}
	for _, text := range c.StringSlice(flagRootfs) {
		image, dir, found := strings.Cut(text, "=")
		if !found || image == "" || dir == "" {
			return o, invalid(flagRootfs, "write IMAGE=DIR", "%.80q names no folder for an image", text)
		}
		o.Rootfs[image] = absolute(dir)
	}
	for _, text := range c.StringSlice(flagNetwork) {
		phase, answer, _ := strings.Cut(text, "=")
		if phase != harbor.PhaseAgent && phase != harbor.PhaseGrader || answer != harbor.AsStated && answer != harbor.NoNetwork {
			return o, invalid(flagNetwork, "write agent=task, agent=none, grader=task or grader=none", "%.80q is none of them", text)
		}
		o.Network[phase] = answer
	}
	return o, nil
}

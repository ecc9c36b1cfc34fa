package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/learn"
)

// learn folds observations into one document.
func (p policyVerbs) learn(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	out := c.String(flagOut)
	if !c.Bool(flagMerge) || out == "" {
		return invalid("", "clove policy learn --merge --out FILE.yaml A.observed.json B.observed.json", "--merge and --out are missing; one run is learned by clove run --learn")
	}
	l := &learning{host: h, path: h.Absolute(out)}
	if err := l.checkPath(); err != nil {
		f := agent.FailureOf(err)
		return &agent.Error{Kind: agent.KindOf(err), Step: "--" + flagOut, Message: f.Message, Hint: f.Hint}
	}
	var merged learn.Observation
	for i, path := range c.Args().Slice()[1:] {
		o, err := readObservation(h, path)
		if err != nil {
			return err
		}
		if i == 0 {
			merged = o
		} else if merged, err = learn.Merge(merged, o); err != nil {
			return inFile(path, err)
		}
	}
	merged.Reads = merged.Reads || c.Bool(flagReads)
	learned, err := l.write(merged)
	if err != nil {
		return err
	}
	reportLearned(p.screen, l.path, merged, learned)
	return nil
}

func readObservation(h host.Host, path string) (learn.Observation, error) {
	text, err := host.ReadBounded(h.Absolute(path), learn.MostBytes)
	if err != nil {
		return learn.Observation{}, &agent.Error{Kind: agent.KindInvalid, Message: "cannot read the observation " + path, Hint: "clove run --learn FILE writes it as FILE" + observedEnding, Err: err}
	}
	o, err := learn.Parse(text)
	return o, inFile(path, err)
}

// inFile says in which file a mistake is.
func inFile(path string, err error) error {
	if err == nil {
		return nil
	}
	f := agent.FailureOf(err)
	return &agent.Error{Kind: agent.KindOf(err), Message: path + ": " + f.Message, Hint: f.Hint}
}

// audit prints what a run was allowed and never used.
func (p policyVerbs) audit(c *cli.Context) error {
	o, err := p.observationOf(c, c.Args().Get(1))
	if err != nil {
		return err
	}
	unused, err := learn.Unused(o)
	if err != nil {
		return err
	}
	if err := p.printList(c, unused); err != nil || c.Bool(flagJSON) {
		return err
	}
	for _, why := range o.Incomplete {
		p.say("clove", cyan, "warning: the observation is incomplete: "+why)
	}
	return nil
}

// observationOf is that of a file, or of a run. Without an observation of the run there are
// its record's figures.
func (p policyVerbs) observationOf(c *cli.Context, reference string) (learn.Observation, error) {
	if strings.HasSuffix(reference, ".json") {
		h, err := p.host()
		if err != nil {
			return learn.Observation{}, err
		}
		return readObservation(h, reference)
	}
	run, err := p.stored(c, reference)
	if err != nil {
		return learn.Observation{}, err
	}
	if run.Record == nil {
		return learn.Observation{}, &agent.Error{Kind: agent.KindConflict, Message: shown(run.Name()) + " has not ended", Hint: "what it never used is known at its end"}
	}
	seen := learn.Figures(*run.Record)
	paths, err := directories(c)
	if err != nil {
		return learn.Observation{}, err
	}
	text, err := host.ReadBounded(paths.Observed(run.Spec.ID), learn.MostBytes)
	switch {
	case err == nil:
		err = json.Unmarshal(text, &seen)
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, fs.ErrPermission):
		err = nil
		p.say("clove", cyan, "warning: "+fmt.Sprintf("%s was not learned, or its observation is root's: only its figures are compared", shown(run.Name())))
		run.Spec.Learn = false
	}
	if err != nil {
		return learn.Observation{}, agent.Failed("observation", err)
	}
	return learn.New(run.Spec, policies.StandardName, *run.Record, seen), nil
}

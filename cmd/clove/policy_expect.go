package main

import (
	"fmt"
	"path/filepath"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies/expect"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
)

const flagLive = "live"

// expectation is a document of expectations with the policy that it names.
type expectation struct {
	expect.Document
	host   host.Host // whose directory is the document's
	policy *resolve.Policy
}

// test compares a policy with what a document expects of it.
func (p policyVerbs) test(c *cli.Context) error {
	e, err := p.readExpectation(c.Args().Get(1))
	if err != nil {
		return err
	}
	decider, err := expect.NewDecider(e.policy.Spec)
	if err != nil {
		return err
	}
	// Also for --live: mistakes are found before a sandbox is made.
	results, err := decider.Decide(e.Expect)
	if err == nil && c.Bool(flagLive) {
		results, err = p.tryExpectation(c, e, decider)
	}
	if err != nil {
		return err
	}
	return printExpected(p.screen, e, results)
}

func (p policyVerbs) readExpectation(name string) (expectation, error) {
	h, err := p.host()
	if err != nil {
		return expectation{}, err
	}
	path := h.Absolute(name)
	text, err := host.ReadBounded(path, expect.MostBytes)
	if err != nil {
		return expectation{}, &agent.Error{Kind: agent.KindInvalid, Step: "policy test", Message: fmt.Sprintf("cannot read %.128q", name),
			Hint: "name a file with version, policy and expect; clove policy --help shows one", Err: err}
	}
	e := expectation{host: h}
	if e.Document, err = expect.Parse(text); err != nil {
		f := agent.FailureOf(err)
		return e, &agent.Error{Kind: agent.KindOf(err), Step: "policy test", Message: name + ": " + f.Message, Hint: f.Hint}
	}
	e.host.Dir = filepath.Dir(path) // where a relative path of the policy begins
	e.policy, err = resolve.LoadPolicy(e.Policy, e.host)
	return e, err
}

// printExpected prints a line for each entry. The exit status says whether all are as expected.
func printExpected(s *screen, e expectation, results []expect.Result) error {
	failed := 0
	for _, r := range results {
		if !r.OK {
			failed++
		}
	}
	if s.json {
		if err := s.printJSON(results); err != nil {
			return err
		}
	} else {
		for i, r := range results {
			fmt.Fprintln(s.out, printable(resultText(e.Expect[i], r)))
		}
		fmt.Fprintf(s.out, "%s: %d of %d as expected\n", printable(e.policy.Document.Name), len(results)-failed, len(results))
	}
	if failed > 0 {
		return exitStatus(exitFailed)
	}
	return nil
}

// resultText is one line: the answer, and what decided.
func resultText(e expect.Entry, r expect.Result) string {
	text := fmt.Sprintf("ok      %s %s: %s", r.Got, e, r.By)
	if !r.OK {
		text = fmt.Sprintf("FAILED  %s: expected %s, is %s: %s", e, r.Is, r.Got, r.By)
	}
	if r.Note != "" {
		text += " (" + r.Note + ")"
	}
	return text
}

package main

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/runtime"
)

// attach has the run report what it uses, and ask on the terminal about the network. close
// ends what it opened.
func (l *learning) attach(s *screen, spec agent.Spec, streams *runtime.IO) (end func(), err error) {
	end = func() {}
	if l == nil {
		return end, nil
	}
	streams.Observed = func(seen agent.Observed) { l.seen = &seen }
	if l.network != learnAsk {
		return end, nil
	}
	if !isTerminal(s.in) {
		s.say("clove", cyan, "there is no terminal to ask on: what the policy refuses stays refused")
		return end, nil
	}
	// The answers are typed where the agent's input would be.
	null, err := os.Open(os.DevNull)
	if err != nil {
		return end, agent.Failed("input", err)
	}
	streams.Stdin = null
	streams.AskNetwork = l.asker(s, spec, bufio.NewReader(s.in))
	return func() { null.Close() }, nil
}

// asker puts a question and takes only a clear yes. Targets that the host's ceiling forbids are
// refused without a question.
func (l *learning) asker(s *screen, spec agent.Spec, from *bufio.Reader) func(context.Context, agent.EgressRule) bool {
	var unread chan string // the answer to a question that was given up
	return func(ctx context.Context, rule agent.EgressRule) bool {
		wider := spec
		wider.Egress.Rules = append(slices.Clone(spec.Egress.Rules), rule)
		if l.host.Ceiling != "" && resolve.CheckCeiling(wider, l.host.Ceiling) != nil {
			return false
		}
		s.say("clove", cyan, fmt.Sprintf("the agent asks for %s; may it reach that from now on? [y/N]", rule.Target))
		if unread == nil {
			unread = make(chan string, 1)
			go func(to chan<- string) { line, _ := from.ReadString('\n'); to <- line }(unread)
		}
		select {
		case line := <-unread:
			unread = nil
			if !slices.Contains([]string{"y", "yes"}, strings.ToLower(strings.TrimSpace(line))) {
				return false
			}
			spec = wider
			return true
		case <-ctx.Done():
			return false
		}
	}
}

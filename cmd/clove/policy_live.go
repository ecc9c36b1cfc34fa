package main

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies/expect"
	"clove.run/clove/policies/probe"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// probeInside is where clove's own binary appears if the sandbox does not have it.
const probeInside = "/clove-policy-probe"

// mostOrders bounds the probe's argument (MAX_ARG_STRLEN, execve(2)).
const mostOrders = 128<<10 - 1

// tryExpectation runs a probe under the policy, and compares what it found.
func (p policyVerbs) tryExpectation(c *cli.Context, e expectation, decider *expect.Decider) ([]expect.Result, error) {
	tries, err := decider.Tries(e.Expect)
	if err != nil {
		return nil, err
	}
	orders := probe.Orders(tries)
	if len(orders) > mostOrders {
		return nil, invalid(flagLive, "write several files", "the entries have %d bytes as the probe gets them, and may have %d", len(orders), mostOrders)
	}
	spec, err := e.probeSpec(orders)
	if err != nil {
		return nil, err
	}
	found, record, err := p.runProbe(c, e, spec)
	if err != nil {
		return nil, err
	}
	if record.Status == agent.StatusStartFailed && record.Error != nil {
		p.reportFailure(*record.Error)
		return nil, exitStatus(exitFailed)
	}
	return decider.Found(e.Expect, found, record), nil
}

// probeSpec is a run of the probe that leaves nothing behind.
func (e expectation) probeSpec(orders string) (agent.Spec, error) {
	program, err := os.Executable()
	if err != nil {
		return agent.Spec{}, agent.Failed("probe", err)
	}
	request := resolve.Request{Policy: e.Policy}
	request.Set(settings.Remove, "true")
	inside := program
	if e.policy.Spec.Files.Rootfs != "" || !e.host.InBase(program) {
		if strings.Contains(program, ":") {
			return agent.Spec{}, invalid(flagLive, "install clove elsewhere", "%q cannot be shown in the sandbox, because of its colon", program)
		}
		inside = probeInside
		request.Add(settings.Volume, program+":"+inside+":ro")
	}
	if e.policy.Spec.Files.Execute != nil {
		request.Add(settings.Execute, inside)
	}
	if e.policy.Spec.Files.Read != nil {
		request.Add(settings.Read, inside)
	}
	request.Args = []string{inside, probe.Argument, orders}
	return resolve.Spec(request, e.host, agent.NewID())
}

// runProbe runs it as clove run does, with its output in a pipe.
func (p policyVerbs) runProbe(c *cli.Context, e expectation, spec agent.Spec) ([]probe.Found, agent.Record, error) {
	from, to, err := os.Pipe()
	if err != nil {
		return nil, agent.Record{}, agent.Failed("probe", err)
	}
	defer from.Close()
	null, err := os.Open(os.DevNull)
	if err != nil {
		return nil, agent.Record{}, errors.Join(agent.Failed("probe", err), to.Close())
	}
	defer null.Close()
	quiet := *p.screen
	quiet.in, quiet.out, quiet.json = null, to, true // refusals are what is looked for, and not reported as they happen
	type outcome struct {
		found []probe.Found
		err   error
	}
	read := make(chan outcome, 1)
	go func() {
		found, err := readFound(from, len(e.Expect))
		_, _ = io.Copy(io.Discard, from) // the probe must not wait for its reader
		read <- outcome{found, err}
	}()
	record, err := launcher{&quiet, p.access}.launch(c, e.host, spec, nil, func(agent.Record) {})
	err = errors.Join(err, to.Close())
	got := <-read
	return got.found, record, errors.Join(err, got.err)
}

// mostFound bounds a line of the probe's.
const mostFound = 64 << 10

// readFound reads at most as many lines as there are entries. The probe may end before.
func readFound(from io.Reader, most int) (found []probe.Found, err error) {
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, mostFound)
	for len(found) < most && lines.Scan() {
		one, ok := probe.ParseFound(lines.Text())
		if !ok {
			return found, &agent.Error{Kind: agent.KindInternal, Step: "probe", Message: fmt.Sprintf("it wrote %.64q", lines.Text())}
		}
		found = append(found, one)
	}
	return found, lines.Err()
}

package main

import (
	"fmt"
	"os"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/cmd/clove/verbs"
)

// showModelTest shows how a call of a model went. A failure is this command's.
func showModelTest(s *screen, l *line, r api.ModelTestResult) error {
	switch {
	case r.Failure != nil:
		return failedTest(r)
	case l.Bool(flagJSON):
		return s.printJSON(r)
	}
	if !r.Reported {
		s.say("clove", cyan, "the provider does not say how many tokens it counts: these are estimated")
	}
	rows, _ := verbs.Rows([]api.ModelTestResult{r}, forms(), nil)
	return printTable(s.out, rows)
}

// testAlone tests a model without cloved, for root.
func testAlone(_ *access, l *line, missing error) (func(api.ModelTestParams) (api.ModelTestResult, error), error) {
	if os.Geteuid() != 0 {
		return nil, missing
	}
	return func(params api.ModelTestParams) (r api.ModelTestResult, err error) {
		own, err := models(nil, nil)
		if err != nil {
			return r, err
		}
		defer own.Close()
		return own.Test(l.Context.Context, params.Model)
	}, nil
}

// failedTest is the error of a model that cannot be called. A failure of the provider
// may pass; any other is the administrator's to mend.
func failedTest(r api.ModelTestResult) error {
	kind := agent.KindInvalid
	switch r.Failure.Reason {
	case api.FailedUnreachable, api.FailedTimeout, api.FailedLost, api.FailedBusy, api.FailedBroken:
		kind = agent.KindBusy
	}
	return &agent.Error{Kind: kind, Step: "model " + r.Model, Message: printable(r.Failure.Message), Hint: printable(r.Failure.Hint)}
}

// money is an amount of millionths of a US dollar.
func money(micros int64) string {
	return "$" + strings.TrimSuffix(strings.TrimRight(fmt.Sprintf("%d.%06d", micros/1_000_000, micros%1_000_000), "0"), ".")
}

// took is a time of a call, to the millisecond.
func took(ns int64) string { return time.Duration(ns).Round(time.Millisecond).String() }

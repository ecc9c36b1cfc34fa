package main

import (
	"os"
	"path/filepath"
	"time"

	"clove.run/clove/policies/build"
	"clove.run/clove/policies/expect"
	"clove.run/clove/policies/host"
)

// document is one of a usual size, which extends another one.
const document = `version: 1
name: measured
description: reads two services and writes a report
extends: sandboxed
widen:
  network: it reads what it reports on
  seccomp: it makes connections
seccomp: standard
network:
  mode: allowlist
  allow: [api.example.com, "*.example.org", 192.0.2.0/24]
  deny: [bad.example.org]
limits:
  memory: 256M
  timeout: 10m
files:
  writable: [/workspace, /tmp]
`

// asked is one question of each kind that takes part in a run.
const asked = `version: 1
policy: measured
expect:
  - {connect: www.example.org, is: allow}
  - {read: /etc/shadow, is: deny}
  - {syscall: mount, is: deny}
`

// repetitions of one operation are one sample: it takes microseconds.
const repetitions = 20

// measureDocuments loads a document, and asks it, in this process.
func measureDocuments(scratch string, rounds int) ([]policyFigure, error) {
	path := filepath.Join(scratch, "measured.yaml")
	if err := os.WriteFile(path, []byte(document), 0o644); err != nil {
		return nil, err
	}
	h, err := host.Current()
	if err != nil {
		return nil, err
	}
	policy, err := build.LoadPolicy(path, h)
	if err != nil {
		return nil, err
	}
	questions, err := expect.Parse([]byte(asked))
	if err != nil {
		return nil, err
	}
	decider, err := expect.NewDecider(policy.Spec)
	if err != nil {
		return nil, err
	}
	operations := []work{
		{"a document loaded, with what it extends", func() error { _, err := build.LoadPolicy(path, h); return err }},
		{"its rules and filter made ready", func() error { _, err := expect.NewDecider(policy.Spec); return err }},
	}
	for _, entry := range questions.Expect {
		operations = append(operations, work{"decided: " + entry.String(), func() error { _, err := decider.Decide([]expect.Entry{entry}); return err }})
	}
	return answersOf(operations, rounds)
}

// answersOf takes turns among the operations.
func answersOf(operations []work, rounds int) ([]policyFigure, error) {
	taken := make([][]float64, len(operations))
	for round := range warmups + rounds {
		for i, operation := range operations {
			began := time.Now()
			for range repetitions {
				if err := operation.do(); err != nil {
					return nil, err
				}
			}
			if round >= warmups {
				taken[i] = append(taken[i], float64(time.Since(began))/float64(time.Microsecond)/repetitions)
			}
		}
	}
	figures := make([]policyFigure, len(operations))
	for i, operation := range operations {
		figures[i] = policyFigure{What: operation.name, Unit: "µs", Values: spreadOf(taken[i])}
	}
	return figures, nil
}

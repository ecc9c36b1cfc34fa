package expect_test

import (
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/policies/expect"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
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

func must(b *testing.B, err error) {
	b.Helper()
	if err != nil {
		b.Fatal(err)
	}
}

// BenchmarkDocument loads a document with what it extends, makes its rules and filter ready, and
// decides one question of each kind.
func BenchmarkDocument(b *testing.B) {
	path := filepath.Join(b.TempDir(), "measured.yaml")
	must(b, os.WriteFile(path, []byte(document), 0o644))
	h, err := host.Current()
	must(b, err)
	b.Run("load", func(b *testing.B) {
		for b.Loop() {
			_, err := resolve.LoadPolicy(path, h)
			must(b, err)
		}
	})
	policy, err := resolve.LoadPolicy(path, h)
	must(b, err)
	b.Run("ready", func(b *testing.B) {
		for b.Loop() {
			_, err := expect.NewDecider(policy.Spec)
			must(b, err)
		}
	})
	decider, err := expect.NewDecider(policy.Spec)
	must(b, err)
	questions, err := expect.Parse([]byte(asked))
	must(b, err)
	for _, entry := range questions.Expect {
		b.Run(entry.String(), func(b *testing.B) {
			for b.Loop() {
				_, err := decider.Decide([]expect.Entry{entry})
				must(b, err)
			}
		})
	}
}

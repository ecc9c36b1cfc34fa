package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/docker/go-units"
	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/internal/doctest"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/seccomp"
)

// TestPolicyPageIsTrue: the table of levels says what a run gets.
func TestPolicyPageIsTrue(t *testing.T) {
	h, err := host.Current()
	if err != nil {
		t.Fatal(err)
	}
	rows := doctest.Rows(t, "docs/policies.md")
	for _, name := range policies.Levels {
		p, err := resolve.LoadPolicy(name, h)
		if err != nil {
			t.Fatal(err)
		}
		s := p.Spec
		network := "`" + s.Network + "`"
		if len(s.Egress.Rules) > 0 {
			network += " and `" + s.Egress.Rules[0].Target + "`"
		}
		files := "writable"
		if s.Files.ReadOnly {
			files = "read-only"
		}
		if s.Files.Writable != nil {
			files += ", writes in " + strings.Join(s.Files.Writable, ", ")
		}
		user := s.User.Name
		if s.User.UID == 0 {
			user += " inside"
		}
		filter, err := seccomp.Profile(s.Seccomp.Profile)
		if err != nil {
			t.Fatal(err)
		}
		want := []string{"`" + name + "`", network, files, user, strconv.Itoa(passing(t, filter)), units.BytesSize(float64(s.Limits.MemoryBytes)),
			strconv.FormatInt(s.Limits.Pids, 10), units.BytesSize(float64(s.Limits.DiskBytes))}
		if !slices.ContainsFunc(rows, func(row []string) bool { return slices.Equal(row, want) }) {
			t.Errorf("docs/policies.md has no row | %s |", strings.Join(want, " | "))
		}
	}
	docker, err := seccomp.Docker()
	if err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(doctest.Root(t), "docs/policies.md"))
	if err != nil {
		t.Fatal(err)
	}
	if sentence := fmt.Sprintf("Docker's default allows %d of them", passing(t, docker)); !strings.Contains(string(text), sentence) {
		t.Errorf("docs/policies.md does not say: %s", sentence)
	}
}

// passing is how many calls pass a profile at least with some arguments.
func passing(t *testing.T, profile *specs.LinuxSeccomp) int {
	t.Helper()
	nothing, err := seccomp.Parse([]byte(`{"defaultAction": "SCMP_ACT_ERRNO", "syscalls": [{"names": ["afs_syscall"], "action": "SCMP_ACT_ERRNO"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	return len(seccomp.Compare(nothing, profile).OnlyB)
}

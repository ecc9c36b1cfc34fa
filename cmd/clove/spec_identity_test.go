package main

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/seccomp"
)

func TestIdentityFlags(t *testing.T) {
	spec := newBench(t).spec("--name", "my.run", "-l", "a=1", "--label", "b=", "-l", "a=2=3", "--hostname", "box-1.lan", "-u", "root", "-t", "--rm",
		"--allow-unenforced", "cpuset", "--network", "none", "--policy", "standard", "--", "true")
	if spec.Name != "my.run" || spec.Hostname != "box-1.lan" || spec.User.UID != 0 || !spec.Terminal || !spec.Remove {
		t.Errorf("%+v", spec)
	}
	if !maps.Equal(spec.Labels, map[string]string{"a": "2=3", "b": ""}) {
		t.Errorf("labels %v", spec.Labels)
	}
	if !slices.Equal(spec.AllowUnenforced, []string{"cpuset"}) || spec.Network != agent.NetworkNone {
		t.Errorf("%+v", spec)
	}
}

func TestNamesAreMadeOfTheCommand(t *testing.T) {
	for command, want := range map[string]string{
		"true":             "true",
		"/usr/bin/python3": "python3",
		"weird name!.sh":   "weird-name-",
		"---":              "run",
		"größe":            "gr--e",
		".hidden":          "run", // all of it counts as a file extension
	} {
		b := newBench(t)
		spec := b.spec("--", command)
		if got := strings.TrimSuffix(spec.Name, "-"+string(spec.ID)[:8]); got != want {
			t.Errorf("%q: %s", command, spec.Name)
		}
	}
	long := newBench(t).spec("--", strings.Repeat("x", 100))
	if err := agent.ValidateName(long.Name); err != nil {
		t.Error(err)
	}
}

func TestIsHostname(t *testing.T) {
	for name, want := range map[string]bool{
		"a": true, "a-b.c1": true, strings.Repeat("a", 63): true, strings.Repeat("a", 64): false,
		"": false, "-a": false, "a-": false, "a..b": false, "a_b": false, "ä": false, "a b": false,
	} {
		if got := agent.IsHostname(name); got != want {
			t.Errorf("%q: %v", name, got)
		}
	}
}

func TestSeccompFlag(t *testing.T) {
	for _, name := range seccomp.Names() {
		if got := newBench(t).spec("--seccomp", name, "--", "true").Seccomp; got.Profile != name || got.Document != nil {
			t.Errorf("%s: %+v", name, got)
		}
	}
	if got := newBench(t).spec("--", "true").Seccomp.Profile; got != "standard" {
		t.Errorf("default %s", got)
	}
	b := newBench(t)
	document := `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read","write","exit_group"],"action":"SCMP_ACT_ALLOW"}]}`
	path := b.file("profile.json", document, 0o644)
	if got := b.spec("--seccomp", "profile.json", "--", "true").Seccomp; got.Profile != path || string(got.Document) != document {
		t.Errorf("%+v", got)
	}
}

package main

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/seccomp"
)

// wideDocument allows a few calls, two of which standard refuses.
const wideDocument = `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[
	{"names":["read","write","execve","exit_group","mount","keyctl"],"action":"SCMP_ACT_ALLOW"},
	{"names":["ioctl"],"action":"SCMP_ACT_ALLOW","args":[{"index":1,"value":21505,"op":"SCMP_CMP_EQ"}]}]}`

func TestSeccompList(t *testing.T) {
	b := newBench(t)
	status, stdout, stderr := b.clove("seccomp", "list")
	lines := strings.Split(strings.TrimSpace(stdout), "\n")
	if status != 0 || len(lines) != 1+len(seccomp.Names()) || !strings.HasPrefix(lines[4], "minimal ") {
		t.Errorf("%d, %s\n%s", status, stderr, stdout)
	}
	var all []listedProfile
	_, stdout, _ = b.clove("seccomp", "list", "--json")
	unmarshal(t, stdout, &all)
	for i, l := range all {
		// Each row is narrower than the one before, and has all calls.
		if l.Name != seccomp.Names()[i] || l.Meaning == "" || i > 0 && (l.Refused <= all[i-1].Refused || l.Allowed+l.Conditional+l.Refused != all[0].Allowed+all[0].Conditional+all[0].Refused) {
			t.Errorf("%+v", l)
		}
	}
}

// The output of show --json is a document with the same rules.
func TestSeccompShowWritesAProfile(t *testing.T) {
	b := newBench(t)
	for _, name := range append(seccomp.Names(), dockerProfile) {
		_, stdout, _ := b.clove("seccomp", "show", name, "--json")
		again, err := seccomp.Parse([]byte(stdout))
		if err != nil {
			t.Errorf("%s: %v", name, err)
			continue
		}
		profile, err := readProfile(name)
		if err != nil {
			t.Fatal(err)
		}
		if c := seccomp.Compare(profile, again); len(c.OnlyA)+len(c.OnlyB)+len(c.Other) != 0 {
			t.Errorf("%s: %+v", name, c)
		}
		if name == seccomp.Minimal && !reflect.DeepEqual(profile, again) {
			t.Errorf("%s is another one when it is read back", name)
		}
	}
}

func TestSeccompShow(t *testing.T) {
	b := newBench(t)
	b.file("wide.json", wideDocument, 0o644)
	t.Chdir(b.host.Dir)
	for _, row := range []struct{ profile, want, not string }{
		{"minimal", "directories: allowed: temporary files come and go\n   mkdir mkdirat", "warning"},
		{"minimal", "processes: allowed for threads: a computation is one process\n   clone\n", "ordinary:"},
		{"standard", "keyrings: refused: keyrings are not in a namespace of their own\n   add_key request_key keyctl\n", "warning"},
		{"strict", "ordinary: allowed: docker's default", "warning"},
		{"wide.json", "warning: mounts: standard refuses it: an agent may not change mounts\n   mount\n", "warning: aio"},
		{"wide.json", "allowed with conditions: the profile's rules say so\n   ioctl\n", "warning: io_uring"},
		{"unconfined", "refused: the profile's rules say so\n   io_uring_setup\n", "ordinary: "},
	} {
		status, stdout, stderr := b.clove("seccomp", "show", row.profile)
		if status != 0 || !strings.Contains(stdout, row.want) || strings.Contains(stdout, row.not) {
			t.Errorf("%s: %d, %s, want %q and not %q:\n%.3000s", row.profile, status, stderr, row.want, row.not, stdout)
		}
	}
}

func TestSeccompExplain(t *testing.T) {
	b := newBench(t)
	path := b.file("wide.json", wideDocument, 0o644)
	for _, row := range []struct{ args, want string }{
		{"clone", "minimal: allowed for threads, otherwise EPERM\n   processes: a computation is one process\n"},
		{"clone3", "strict: refused with ENOSYS\n   namespaces: "},
		{"read", "standard: allowed\n   ordinary: docker's default profile"},
		{"read", "unconfined: allowed\n   the profile's rules say so\n"},
		{"fork --profile minimal", "minimal: refused with EPERM\n   processes: a computation is one process; threads are allowed\n"},
		{"ioctl --profile " + path, path + ": allowed with conditions, otherwise EPERM\n   the profile's rules say so\n"},
		{"keyctl --profile " + path, path + ": allowed\n   keyrings: standard refuses it: keyrings are"},
		{"memfd_secret --profile docker", "docker: allowed\n   secret-memory: standard refuses it: "},
	} {
		status, stdout, stderr := b.clove(append([]string{"seccomp", "explain"}, strings.Fields(row.args)...)...)
		if status != 0 || !strings.Contains(stdout, row.want) {
			t.Errorf("%s: %d, %s, want %q:\n%s", row.args, status, stderr, row.want, stdout)
		}
	}
	var all []explained
	_, stdout, _ := b.clove("seccomp", "explain", "socket", "--json")
	if unmarshal(t, stdout, &all); len(all) != 4 || all[3].Profile != "minimal" || all[3].Answer != "EPERM" || all[2].Verdict != seccomp.Conditional {
		t.Errorf("%s", stdout)
	}
}

func TestSeccompCompare(t *testing.T) {
	b := newBench(t)
	_, stdout, _ := b.clove("seccomp", "compare", "strict", "minimal")
	for _, want := range []string{"CALL STRICT MINIMAL DIFFERENCE", "fork allowed refused only strict allows it", "clone allowed with conditions allowed with conditions allowed with other arguments"} {
		if !slices.ContainsFunc(strings.Split(stdout, "\n"), func(line string) bool { return strings.Join(strings.Fields(line), " ") == want }) {
			t.Errorf("no line %q:\n%s", want, stdout)
		}
	}
	if _, stdout, _ := b.clove("seccomp", "compare", "strict", "strict"); stdout != "strict and strict allow the same\n" {
		t.Errorf("%q", stdout)
	}
	// Without a second profile it is docker's.
	_, one, _ := b.clove("seccomp", "compare", "standard", "--json")
	_, two, _ := b.clove("seccomp", "compare", "standard", "docker", "--json")
	var compared seccomp.Comparison
	if unmarshal(t, one, &compared); one != two || len(compared.OnlyB) == 0 || !json.Valid([]byte(one)) {
		t.Errorf("%s", one)
	}
}

func TestSeccompRefusesBadLines(t *testing.T) {
	b := newBench(t)
	broken := b.file("broken.json", `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read"],"action":"ALLOW"}]}`, 0o644)
	for line, want := range map[string]string{
		"":                              "clove seccomp list, show PROFILE",
		"show":                          "clove seccomp show [--json] PROFILE",
		"list standard":                 "clove seccomp list [--json]",
		"compare a b c":                 "clove seccomp compare [--json] PROFILE [PROFILE]",
		"list --profile strict":         "does not take it",
		"show nosuch":                   "it takes unconfined, standard, strict, minimal, docker or a file",
		"show " + broken:                `action "ALLOW" is not known`,
		"compare standard nosuch":       "it takes unconfined",
		"explain opne":                  "clove seccomp show unconfined",
		"explain read --profile nosuch": "it takes unconfined",
		"explain opne --profile docker": `"opne"`,
	} {
		status, stdout, stderr := b.clove(append([]string{"seccomp"}, strings.Fields(line)...)...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, want) || strings.Count(stderr, "clove: ") != 1 {
			t.Errorf("%s: %d, %s, %s", line, status, stdout, stderr)
		}
	}
}

// A run with a file that allows what standard refuses begins with a line about it.
func TestRunWarnsOfAWideFilter(t *testing.T) {
	b := newBench(t)
	b.backend.record = agent.Record{Status: agent.StatusExited}
	b.file("wide.json", wideDocument, 0o644)
	b.file("narrow.json", `{"defaultAction":"SCMP_ACT_ERRNO","syscalls":[{"names":["read","execve"],"action":"SCMP_ACT_ALLOW"}]}`, 0o644)
	_, _, stderr := b.clove("run", "--seccomp", "wide.json", "--", "true")
	if !strings.Contains(stderr, "wide.json allows calls that standard refuses: mounts, keyrings\n") || strings.Count(stderr, "\n") != 2 || !strings.Contains(stderr, "hint: clove seccomp show ") {
		t.Errorf("%q", stderr)
	}
	for _, quiet := range [][]string{{"--seccomp", "narrow.json"}, {"--seccomp", "unconfined"}, {"--seccomp", "wide.json", "--json"}, nil} {
		if _, _, stderr := b.clove(append(append([]string{"run"}, quiet...), "--", "true")...); strings.Contains(stderr, "standard refuses") {
			t.Errorf("%q: %q", quiet, stderr)
		}
	}
}

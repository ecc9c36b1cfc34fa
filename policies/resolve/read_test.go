package resolve

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// A list of what may be read narrows freely. Wider, or gone, it needs a reason.
func TestListsOfReadsExtend(t *testing.T) {
	t.Parallel()
	const list = "extends: sandboxed\nfiles: {read: [/usr, /workspace]}\n"
	for name, row := range map[string]struct{ child, want string }{
		"narrower":      {"files: {read: [/usr, /workspace/src]}\n", ""},
		"the same":      {"", ""},
		"own places":    {"files: {read: [/usr, /tmp/x]}\n", ""},
		"one more":      {"files: {read: [/usr, /etc]}\n", "files.read: /etc instead of /usr, /workspace"},
		"a reason":      {"files: {read: [/usr, /etc]}\nwiden: {files.read: it reads settings}\n", ""},
		"empty":         {"files: {read: []}\n", "files.read: the list of what may be read is empty"},
		"writable root": {"files: {root: writable}\nwiden: {files.root: it installs}\n", ""},
		"no filter":     {"seccomp: unconfined\nwiden: {seccomp: x}\n", "files.read: a list of what may be read needs a filter"},
		"no path":       {"files: {read: [src]}\n", `files.read: "src" is not an absolute path`},
	} {
		_, err := LoadPolicy("child", policyHost(t, map[string]string{"list": list, "child": "extends: list\n" + row.child}))
		if f := agent.FailureOf(err); (err == nil) != (row.want == "") || err != nil && (!strings.Contains(f.Message, row.want) || f.Hint == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// Flags add to a policy's list, as with every list.
func TestListOfReadsByFlags(t *testing.T) {
	t.Parallel()
	h := policyHost(t, map[string]string{"list": "extends: sandboxed\nfiles: {read: [/usr, /etc]}\n"})
	for name, row := range map[string]struct {
		policy string
		flags  []string
		want   []string
	}{
		"the policy's": {policy: "list", want: []string{"/usr", "/etc"}},
		"both":         {policy: "list", flags: []string{"/etc", "/workspace"}, want: []string{"/usr", "/etc", "/workspace"}},
		"the flags'":   {policy: "standard", flags: []string{"/usr"}, want: []string{"/usr"}},
		"none":         {policy: "sandboxed"},
	} {
		spec, err := Spec(Request{Args: []string{"/bin/true"}, Policy: row.policy, Values: settings.Values{settings.Read: row.flags}}, h, agent.NewID())
		if err != nil || !slices.Equal(spec.Files.Read, row.want) || (spec.Files.Read == nil) != (row.want == nil) {
			t.Errorf("%s: %q, %v", name, spec.Files.Read, err)
		}
	}
	_, err := Spec(Request{Args: []string{"/bin/true"}, Values: settings.Values{settings.Read: []string{"src"}}}, h, agent.NewID())
	if f := agent.FailureOf(err); f == nil || f.Step != "--allow-read" || f.Hint == "" {
		t.Errorf("%v", err)
	}
}

// A ceiling with a list means that each run has one, and nothing beyond it.
func TestCeilingOfReads(t *testing.T) {
	t.Parallel()
	h := policyHost(t, map[string]string{"host": "extends: unrestricted\nseccomp: standard\nfiles: {read: [/usr, /workspace]}\n"})
	for list, want := range map[string]string{"": "files.read: all that appears inside instead of", "/usr/bin": "", "/etc": "files.read: /etc instead of"} {
		r := Request{Args: []string{"/bin/true"}}
		if list != "" {
			r.Add(settings.Read, list)
		}
		_, err := Spec(r, h, agent.NewID())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", list, err)
		}
	}
}

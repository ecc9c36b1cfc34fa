package resolve

import (
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// A list of programs narrows freely. Wider, or gone, it needs a reason.
func TestListsOfProgramsExtend(t *testing.T) {
	t.Parallel()
	const list = "extends: sandboxed\nfiles: {execute: [/bin/sh, '/usr/bin/git*']}\n"
	for name, row := range map[string]struct{ child, want string }{
		"narrower":   {"files: {execute: [/bin/sh, /usr/bin/git]}\n", ""},
		"the same":   {"", ""},
		"one more":   {"files: {execute: [/bin/sh, /usr/bin/gcc]}\n", "files.execute: /usr/bin/gcc instead of /bin/sh, /usr/bin/git*"},
		"a reason":   {"files: {execute: [/bin/sh, /usr/bin/gcc]}\nwiden: {files.execute: it builds}\n", ""},
		"empty":      {"files: {execute: []}\n", "files.execute: the list of programs is empty"},
		"no list":    {"files: {root: writable}\nwiden: {files.root: it installs}\n", "files.execute: any program instead of /bin/sh, /usr/bin/git*"},
		"no filter":  {"seccomp: unconfined\nwiden: {seccomp: x}\n", "files.execute: a list of programs needs a filter"},
		"no path":    {"files: {execute: [sh]}\n", `files.execute: "sh" is not an absolute path`},
		"both wider": {"files: {root: writable}\nwiden: {files: it installs}\n", ""},
	} {
		_, err := LoadPolicy("child", policyHost(t, map[string]string{"list": list, "child": "extends: list\n" + row.child}))
		if f := agent.FailureOf(err); (err == nil) != (row.want == "") || err != nil && (!strings.Contains(f.Message, row.want) || f.Hint == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
	_, err := LoadPolicy("child", policyHost(t, map[string]string{"child": "files: {execute: [/bin/sh]}\n"}))
	if f := agent.FailureOf(err); !strings.Contains(f.Message, "needs a read-only root") || !strings.Contains(f.Hint, "write files.root: read-only") {
		t.Errorf("a writable root: %+v", f)
	}
}

// Flags add to a policy's list, as with every list.
func TestListOfProgramsByFlags(t *testing.T) {
	t.Parallel()
	h := policyHost(t, map[string]string{"list": "extends: sandboxed\nfiles: {execute: [/bin/sh, /bin/ls]}\n"})
	for name, row := range map[string]struct {
		policy     string
		flags      []string
		want       []string
		unreadable string
	}{
		"the policy's": {policy: "list", want: []string{"/bin/sh", "/bin/ls"}},
		"both":         {policy: "list", flags: []string{"/bin/ls", "/bin/cat"}, want: []string{"/bin/sh", "/bin/ls", "/bin/cat"}},
		"the flags'":   {policy: "sandboxed", flags: []string{"/bin/cat"}, want: []string{"/bin/cat"}},
		"none":         {policy: "sandboxed"},
		"standard":     {policy: "standard", flags: []string{"/bin/cat"}, unreadable: "needs a read-only root"},
	} {
		spec, err := Spec(Request{Args: []string{"/bin/true"}, Policy: row.policy, Values: settings.Values{settings.Execute: row.flags}}, h, agent.NewID())
		if row.unreadable != "" {
			if f := agent.FailureOf(err); f == nil || f.Step != "--allow-exec" || !strings.Contains(f.Message, row.unreadable) || !strings.Contains(f.Hint, "--read-only") {
				t.Errorf("%s: %v", name, err)
			}
			continue
		}
		if err != nil || !slices.Equal(spec.Files.Execute, row.want) {
			t.Errorf("%s: %q, %v", name, spec.Files.Execute, err)
		}
	}
}

// A ceiling with a list means that each run has one, and nothing beyond it.
func TestCeilingOfPrograms(t *testing.T) {
	t.Parallel()
	h := policyHost(t, map[string]string{"host": "extends: unrestricted\nseccomp: standard\nfiles: {root: read-only, execute: ['/usr/bin/*', /bin/sh]}\n"})
	for list, want := range map[string]string{"": "files.execute: any program instead of", "/usr/bin/git": "", "/opt/tool": "files.execute: /opt/tool instead of"} {
		r := Request{Args: []string{"/bin/true"}, Values: settings.Values{settings.Root: {settings.RootReadOnly}}}
		if list != "" {
			r.Add(settings.Execute, list)
		}
		_, err := Spec(r, h, agent.NewID())
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", list, err)
		}
	}
}

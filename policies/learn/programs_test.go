package learn

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// executing is an observation of a run under a level whose programs were seen.
func executing(t testing.TB, under string) Observation {
	t.Helper()
	o := observation(t, under)
	o.ProgramsKnown, o.Programs = true, []string{"/usr/bin/dash", "/usr/bin/ls", "/usr/lib/module.so"}
	return o
}

func TestTheListOfPrograms(t *testing.T) {
	t.Parallel()
	policy, text := resolved(t, t.TempDir(), executing(t, policies.StandardName))
	if want := []string{"/usr/bin/dash", "/usr/bin/ls", "/usr/lib/module.so"}; !slices.Equal(policy.Spec.Files.Execute, want) {
		t.Errorf("%q\n%s", policy.Spec.Files.Execute, text)
	}
	if !strings.Contains(text, `- "/usr/lib/module.so" # loaded, and no program of the list is linked with it`) || strings.Contains(text, "# executed:") {
		t.Errorf("%s", text)
	}
}

// TestNamesOfProgramsAreNoPatterns: a name with characters of a pattern names one file.
func TestNamesOfProgramsAreNoPatterns(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"/usr/bin/[", "/usr/bin/*", "/usr/lib/a?b", `/usr/lib/a\b`, `/usr/lib/\[x]`} {
		o := executing(t, policies.StandardName)
		o.Programs, o.Executed = []string{name}, []string{name}
		policy, text := resolved(t, t.TempDir(), o)
		files := policy.Spec.Files
		if !files.MayExecute(name) || files.MayExecute("/usr/bin/ls") || files.MayExecute("/usr/lib/axb") || len(files.Execute) != 1 {
			t.Errorf("%s: %q\n%s", name, files.Execute, text)
		}
	}
}

// TestNoListWithoutAReason: where a list would break the run, there is none, and the document
// says why.
func TestNoListWithoutAReason(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Observation){
		"what programs load was not observed": func(o *Observation) { o.ProgramsKnown = false },
		"no program was seen":                 func(o *Observation) { o.Programs = nil },
		"the root is writable":                func(o *Observation) { o.Written = []string{"/usr/lib/x"} },
		"/workspace/venv/x.so was loaded, and the agent can write to /workspace": func(o *Observation) { o.Programs = append(o.Programs, "/workspace/venv/x.so") },
		"/tmp/a.out was executed, and the agent can write to /tmp": func(o *Observation) {
			o.Programs, o.Executed = append(o.Programs, "/tmp/a.out"), append(o.Executed, "/tmp/a.out")
		},
		"/srv/x was loaded, and the agent can write to /srv": func(o *Observation) {
			o.Programs = append(o.Programs, "/srv/x")
			o.Given.Set(settings.Volume, "/srv:/srv")
		},
		"/usr/bin/ls was executed: it does not exist inside": func(o *Observation) {
			o.Unlistable = []agent.ObservedProblem{{Path: "/usr/bin/ls", Reason: "it does not exist inside"}}
		},
		"memfd_create was used":        func(o *Observation) { o.Calls = append(o.Calls, agent.ObservedCall{Name: "memfd_create"}) },
		"nothing of the kernel's /dev": func(o *Observation) { o.Programs = append(o.Programs, "/dev/zero") },
	} {
		o := executing(t, policies.StandardName)
		change(&o)
		policy, text := resolved(t, t.TempDir(), o.sorted())
		if policy.Spec.Files.Execute != nil || !strings.Contains(text, "# no list of programs: "+want) || !strings.Contains(text, "# executed: /usr/bin/ls") {
			t.Errorf("%s: %q\n%s", want, policy.Spec.Files.Execute, text)
		}
	}
}

// TestAListThatWasGivenStays: a setting that cannot be learned remains as the run had it, and one
// that can gets no wider without a reason.
func TestAListThatWasGivenStays(t *testing.T) {
	t.Parallel()
	o := executing(t, "sandboxed")
	o.Given.Set(settings.Execute, "/usr/bin")
	policy, text := resolved(t, t.TempDir(), o)
	if len(policy.Spec.Files.Execute) != 3 {
		t.Errorf("%q\n%s", policy.Spec.Files.Execute, text)
	}
	o.ProgramsKnown = false
	policy, text = resolved(t, t.TempDir(), o)
	if !slices.Equal(policy.Spec.Files.Execute, []string{"/usr/bin"}) {
		t.Errorf("%q\n%s", policy.Spec.Files.Execute, text)
	}
}

// TestMergedPrograms: a list of two runs has the programs of both, and there is none where one
// run did not see its programs.
func TestMergedPrograms(t *testing.T) {
	t.Parallel()
	a, b := executing(t, policies.StandardName), executing(t, policies.StandardName)
	b.Programs, b.Runs[0].ID = []string{"/usr/bin/dash", "/usr/bin/wc"}, "b"
	both, err := Merge(a, b)
	if err != nil || !slices.Equal(both.Programs, []string{"/usr/bin/dash", "/usr/bin/ls", "/usr/bin/wc", "/usr/lib/module.so"}) || !both.ProgramsKnown {
		t.Errorf("%v %q", err, both.Programs)
	}
	text, err := both.Text()
	if err != nil {
		t.Fatal(err)
	}
	if again, err := Parse(text); err != nil || !reflect.DeepEqual(again, both) {
		t.Errorf("%v %+v", err, again)
	}
	b.ProgramsKnown = false
	if both, err = Merge(a, b); err != nil || both.ProgramsKnown {
		t.Errorf("%v %v", err, both.ProgramsKnown)
	}
}

func TestUnusedPrograms(t *testing.T) {
	t.Parallel()
	o := executing(t, policies.StandardName)
	has := func(want Finding) {
		t.Helper()
		if found, err := Unused(o); err != nil || !slices.Contains(found, want) {
			t.Errorf("%v %v", err, found)
		}
	}
	has(Finding{"files.execute", "every program", "3 programs and libraries"})
	o.Listed = []string{"/bin/ls", "/bin/sh"}
	o.Given.SetList(settings.Execute, []string{"/bin/ls", "/bin/sh", "/usr/lib/git-core"})
	has(Finding{"files.execute", "/usr/lib/git-core", "neither executed nor loaded"})
	if found, _ := Unused(o); slices.ContainsFunc(found, func(f Finding) bool { return f.Allowed == "/bin/sh" || f.Allowed == "every program" }) {
		t.Errorf("%v", found)
	}
}

package learn

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// readingRun is an observation that asks for a list of reads.
func readingRun(t testing.TB, change func(o *Observation)) Observation {
	t.Helper()
	o := executing(t, policies.StandardName)
	o.Reads = true
	change(&o)
	return o
}

func TestTheListOfReads(t *testing.T) {
	t.Parallel()
	many := func(folder string, n int) (files []string) {
		for i := range n {
			files = append(files, fmt.Sprintf("%s/%04d", folder, i))
		}
		return files
	}
	for name, row := range map[string]struct {
		change func(o *Observation)
		want   []string
		says   string
	}{
		"single files": {func(o *Observation) {
			o.Written = nil
			o.Read = append(o.Read, "/etc/hosts", "/workspace/src/a.py", "/tmp/x")
		}, []string{"/etc/hosts", "/sys", "/usr", "/workspace/src/a.py"}, `- "/usr" # whole: the base system; `},
		"where it writes": {func(o *Observation) { o.Read = []string{"/workspace/src/a.py"} },
			[]string{"/sys", "/usr", "/workspace"}, `- "/workspace" # whole: the agent writes there`},
		"a folder": {func(o *Observation) {
			o.Written, o.Read, o.Folders = nil, []string{"/etc/ssl/a", "/etc/ssl/b/c"}, []string{"/etc/ssl", "/tmp"}
		}, []string{"/etc/ssl", "/sys", "/usr"}, `- "/etc/ssl" # whole: the folder itself was opened`},
		"folders in each other": {func(o *Observation) {
			o.Written, o.Read, o.Folders = nil, nil, []string{"/etc/ssl/certs", "/etc/ssl"}
		}, []string{"/etc/ssl", "/sys", "/usr"}, ""},
		"a volume": {func(o *Observation) {
			o.Written, o.Read = nil, []string{"/data/a", "/out/b"}
			o.Given.SetList(settings.Volume, []string{"/srv:/data:ro", "/var/tmp:/out"})
		}, []string{"/data/a", "/out", "/sys", "/usr"}, ""},
		"an interpreter": {func(o *Observation) {
			o.Written, o.Executed = nil, append(o.Executed, "/opt/python/bin/python3")
		}, []string{"/opt/python", "/sys", "/usr"}, "/opt/python/bin/python3 was executed"},
		"a name like a pattern": {func(o *Observation) { o.Written, o.Read = nil, []string{"/etc/a/b[1]"} },
			[]string{"/etc/a", "/sys", "/usr"}, "whole: no list can name /etc/a/b[1]"},
		"many": {func(o *Observation) {
			o.Written, o.Read = nil, slices.Concat(many("/etc/many", 1000), many("/etc/few", 20), []string{"/etc/hosts"})
		}, slices.Sorted(slices.Values(append(many("/etc/few", 20), "/etc/hosts", "/etc/many", "/sys", "/usr"))), "whole: 1000 files and folders of it were opened"},
		"many folders": {func(o *Observation) {
			o.Written, o.Read = nil, nil
			for _, folder := range many("/workspace/modules", 300) {
				o.Read = append(o.Read, folder+"/package.json")
			}
		}, []string{"/sys", "/usr", "/workspace/modules"}, "whole: 300 files and folders of it were opened"},
	} {
		o := readingRun(t, row.change).sorted()
		policy, text := resolved(t, t.TempDir(), o)
		if got := policy.Spec.Files.Read; !slices.Equal(got, row.want) || !strings.Contains(text, row.says) {
			t.Errorf("%s: %q\n%s", name, got, text)
		}
	}
}

// TestNoListOfReadsWithoutAReason: a run that cannot have one gets none, and the document says so.
func TestNoListOfReadsWithoutAReason(t *testing.T) {
	t.Parallel()
	for want, change := range map[string]func(*Observation){
		"the root is writable":             func(o *Observation) { o.Written = []string{"/usr/lib/x"} },
		"the root folder itself":           func(o *Observation) { o.Folders = []string{"/"} },
		"a list of what may be read needs": func(o *Observation) { o.CallsKnown = false; o.Given.Set(settings.Seccomp, "unconfined") },
	} {
		o := readingRun(t, change).sorted()
		learned, err := Write(o, "x", "./x.seccomp.json", extend)
		if err != nil {
			t.Fatal(err)
		}
		if !strings.Contains(learned.Unread, want) || !strings.Contains(string(learned.Document), "# no list of what may be read: ") || strings.Contains(string(learned.Document), "read:\n") {
			t.Errorf("%s: %q\n%s", want, learned.Unread, learned.Document)
		}
	}
	if policy, text := resolved(t, t.TempDir(), executing(t, policies.StandardName)); policy.Spec.Files.Read != nil || strings.Contains(text, "may be read") {
		t.Errorf("without being asked: %s", text)
	}
}

// TestAListOfReadsThatWasGivenStays: nothing gets wider, also where a list is asked for.
func TestAListOfReadsThatWasGivenStays(t *testing.T) {
	t.Parallel()
	for _, asked := range []bool{false, true} {
		o := readingRun(t, func(o *Observation) {
			o.Reads = asked
			o.Given.SetList(settings.Read, []string{"/usr", "/workspace/src", "/etc"})
			o.Read = append(o.Read, "/etc/hosts")
		}).sorted()
		if policy, text := resolved(t, t.TempDir(), o); !slices.Equal(policy.Spec.Files.Read, o.Given.Values[settings.Read]) {
			t.Errorf("%t: %q\n%s", asked, policy.Spec.Files.Read, text)
		}
	}
}

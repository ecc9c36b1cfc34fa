package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestExecuteIsChecked(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		list     []string
		writable bool
		filter   string
		want     string // empty: it passes
	}{
		"none":            {},
		"one":             {list: []string{"/usr/bin/python3"}},
		"patterns":        {list: []string{"/usr/lib/git-core/*", "/usr/bin/python3.[0-9]?"}},
		"empty":           {list: []string{}, want: "is empty"},
		"too many":        {list: make([]string, entriesMost+1), want: "and may be"},
		"a writable root": {list: []string{"/usr/bin/python3"}, writable: true, want: "needs a read-only root"},
		"without filter":  {list: []string{"/usr/bin/python3"}, filter: SeccompUnconfined, want: "needs a filter"},
		"a name":          {list: []string{"python3"}, want: "not an absolute path"},
		"another form":    {list: []string{"/usr/bin/../bin/gcc"}, want: "not an absolute path"},
		"a slash behind":  {list: []string{"/usr/bin/"}, want: "not an absolute path"},
		"the root":        {list: []string{"/"}, want: "the whole root"},
		"the kernel's":    {list: []string{"/proc/1/exe"}, want: "of the kernel's"},
		"a device":        {list: []string{"/dev/shm"}, want: "of the kernel's"},
		"a bad pattern":   {list: []string{"/usr/bin/[a"}, want: "not a pattern"},
		"a line break":    {list: []string{"/usr/bin/a\nb"}, want: "cannot be shown"},
		"a zero byte":     {list: []string{"/usr/bin/a\x00b"}, want: "cannot be shown"},
		"no text":         {list: []string{""}, want: "not an absolute path"},
		"twice":           {list: []string{"/a", "/b", "/a"}, want: "/a is in the list twice"},
	} {
		s := whole()
		s.Files = Files{ReadOnly: !row.writable, Execute: row.list}
		if row.filter != "" {
			s.Seccomp.Profile = row.filter
		}
		err := s.Validate()
		if (err == nil) != (row.want == "") || err != nil && (!strings.Contains(err.Error(), row.want) || KindOf(err) != KindInvalid || FailureOf(err).Hint == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty list from the API is not taken for none.
func TestExecuteSurvivesJSON(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{nil, {"/usr/bin/python3"}} {
		text, err := json.Marshal(Files{ReadOnly: true, Execute: list})
		if err != nil {
			t.Fatal(err)
		}
		var back Files
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Execute, list) {
			t.Errorf("%s: %v, %q", text, err, back.Execute)
		}
	}
	s := whole()
	if err := json.Unmarshal([]byte(`{"read_only": true, "execute": []}`), &s.Files); err != nil || s.ValidateExecute() == nil {
		t.Errorf("an empty list passes: %v, %q", err, s.Files.Execute)
	}
}

func TestMayExecute(t *testing.T) {
	t.Parallel()
	f := Files{Execute: []string{"/usr/bin/python3", "/usr/lib/git-core", "/usr/bin/git*"}}
	for at, want := range map[string]bool{
		"/usr/bin/python3": true, "/usr/bin/python3.11": false, "/usr/bin": false,
		"/usr/lib/git-core/git-add": true, "/usr/lib/git-core": true, "/usr/lib/git-core2": false,
		"/usr/bin/git-shell": true, "/usr/bin/git/x": false,
	} {
		if got := f.MayExecute(at); got != want {
			t.Errorf("%s: %v", at, got)
		}
		if !(Files{}).MayExecute(at) {
			t.Errorf("%s is refused without a list", at)
		}
	}
}

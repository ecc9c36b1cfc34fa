package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestReadIsChecked(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		list   []string
		binds  []Bind
		filter string
		want   string // empty: it passes
	}{
		"none":              {},
		"one":               {list: []string{"/usr"}},
		"a writable root":   {list: []string{"/usr", "/workspace/src"}},
		"empty":             {list: []string{}, want: "is empty"},
		"too many":          {list: make([]string, entriesMost+1), want: "and may be"},
		"without filter":    {list: []string{"/usr"}, filter: SeccompUnconfined, want: "needs a filter"},
		"a name":            {list: []string{"usr"}, want: "not an absolute path"},
		"another form":      {list: []string{"/usr/../etc"}, want: "not an absolute path"},
		"a slash behind":    {list: []string{"/usr/"}, want: "not an absolute path"},
		"the root":          {list: []string{"/"}, want: "the whole root"},
		"processes":         {list: []string{"/proc/1/exe"}, want: "always readable"},
		"devices":           {list: []string{"/dev"}, want: "always readable"},
		"a pattern":         {list: []string{"/workspace/*.txt"}, want: "is a pattern"},
		"a line break":      {list: []string{"/usr/a\nb"}, want: "cannot be shown"},
		"twice":             {list: []string{"/a", "/b", "/a"}, want: "/a is in the list twice"},
		"a volume":          {list: []string{"/data"}, binds: []Bind{{Source: "/srv", Target: "/data"}}},
		"a part of it":      {list: []string{"/data/a"}, binds: []Bind{{Source: "/srv", Target: "/data"}}, want: "could put something else there"},
		"of a read-only":    {list: []string{"/data/a"}, binds: []Bind{{Source: "/srv", Target: "/data", ReadOnly: true}}},
		"beside the volume": {list: []string{"/database"}, binds: []Bind{{Source: "/srv", Target: "/data"}}},
	} {
		s := whole()
		s.Files = Files{Read: row.list, Binds: row.binds}
		if row.filter != "" {
			s.Seccomp.Profile = row.filter
		}
		err := s.Validate()
		if (err == nil) != (row.want == "") || err != nil && (!strings.Contains(err.Error(), row.want) || KindOf(err) != KindInvalid || FailureOf(err).Hint == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// An empty list from the API is not taken for none, under which everything may be read.
func TestReadSurvivesJSON(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][]string{`{}`: nil, `{"read":["/usr"]}`: {"/usr"}, `{"read":[]}`: {}} {
		var f Files
		if err := json.Unmarshal([]byte(text), &f); err != nil || !reflect.DeepEqual(f.Read, want) {
			t.Errorf("%s: %v, %#v", text, err, f.Read)
		}
	}
}

func TestMayRead(t *testing.T) {
	t.Parallel()
	f := Files{Read: []string{"/usr", "/workspace/src"}, Tmpfs: []Tmpfs{{Target: "/cache"}}, Binds: []Bind{{Source: "/srv", Target: "/var/tmp"}, {Source: "/srv", Target: "/data"}}}
	for at, want := range map[string]bool{
		"/usr": true, "/usr/bin/env": true, "/usrs": false, "/": false, "/etc/passwd": false, "/workspace": false, "/workspace/src/a": true, "/workspace/.env": false,
		"/tmp/x": true, "/home/agent/x": true, "/proc/self/status": true, "/dev/null": true, "/cache/x": true, "/var/tmp/x": false, "/data/x": false, "/etc/ld.so.cache": true,
	} {
		if got := f.MayRead(at); got != want {
			t.Errorf("%s: %t", at, got)
		}
	}
	if !(Files{}).MayRead("/etc/passwd") {
		t.Error("without a list something cannot be read")
	}
}

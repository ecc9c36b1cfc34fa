package grant

import (
	"encoding/json"
	"errors"
	"regexp"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

var now = time.Date(2026, 11, 23, 12, 0, 0, 0, time.UTC)

// given is a grant of root's to a run.
func given(t *testing.T, text string, change func(*Request)) Grant {
	t.Helper()
	want := Request{ID: "root", Scope: scope(t, text), Holder: "0123456789abcdef", Giver: "uid:0"}
	if change != nil {
		change(&want)
	}
	g, err := New(want, now)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func wanted(t *testing.T, text string) Request {
	return Request{ID: "child", Scope: scope(t, text), Holder: "fedcba9876543210", Giver: "0123456789abcdef"}
}

func TestNewGrants(t *testing.T) {
	t.Parallel()
	local := time.FixedZone("", 3600)
	g := given(t, "state:/notes/:rw", func(r *Request) { r.Expires, r.Uses, r.Reason = now.Add(time.Hour).In(local), 3, "to note" })
	want := Grant{ID: "root", Kind: State, Pattern: "/notes", Rights: ReadWrite, Expires: now.Add(time.Hour), UsesLeft: 3, Holder: "0123456789abcdef", Giver: "uid:0",
		Reason: "to note", Created: now}
	if g != want {
		t.Errorf("got  %+v\nwant %+v", g, want)
	}
	if s, err := g.Scope(); err != nil || s.String() != "state:/notes:rw" {
		t.Errorf("its scope is %s, %v", s, err)
	}
	if g := given(t, "tool:x", nil); g.UsesLeft != Unlimited || g.Spent() || g.Expired(now.Add(agent.ClockCeiling)) {
		t.Errorf("without bounds: %+v", g)
	}
	if !g.Expired(g.Expires) || g.Expired(g.Expires.Add(-1)) || !(Grant{}).Spent() {
		t.Error("a grant lasts until just before its expiry, and none has no uses")
	}
	for name, change := range map[string]func(*Request){
		"no scope":       func(r *Request) { r.Scope = Scope{} },
		"no id":          func(r *Request) { r.ID = "" },
		"long id":        func(r *Request) { r.ID = strings.Repeat("a", IDMost+1) },
		"two lines":      func(r *Request) { r.Reason = "a\nb" },
		"not UTF-8":      func(r *Request) { r.Reason = "\xff" },
		"long reason":    func(r *Request) { r.Reason = strings.Repeat("a", ReasonMost+1) },
		"no holder":      func(r *Request) { r.Holder = "" },
		"no giver":       func(r *Request) { r.Giver = "" },
		"negative uses":  func(r *Request) { r.Uses = -2 },
		"too many uses":  func(r *Request) { r.Uses = UsesMost + 1 },
		"past expiry":    func(r *Request) { r.Expires = now },
		"distant expiry": func(r *Request) { r.Expires = now.Add(agent.ClockCeiling + 1) },
		"uses of net":    func(r *Request) { r.Scope, r.Uses = scope(t, "net:a.example"), 1 },
	} {
		r := wanted(t, "tool:x")
		change(&r)
		if g, err := New(r, now); agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s: %+v, %v", name, g, err)
		}
	}
}

// A row that lost its uses allows nothing.
func TestRowsAreKept(t *testing.T) {
	t.Parallel()
	for _, g := range []Grant{given(t, "tool:x", nil), given(t, "file:/a:rw", func(r *Request) { r.Expires, r.Uses, r.Reason = now.Add(time.Hour+1), 3, "r" })} {
		text, err := json.Marshal(g)
		if err != nil {
			t.Fatal(err)
		}
		var again Grant
		if err := json.Unmarshal(text, &again); err != nil || again != g {
			t.Errorf("%s is read as %+v, %v", text, again, err)
		}
		var lost Grant
		less := regexp.MustCompile(`"uses_left":-?[0-9]+,`).ReplaceAllString(string(text), "")
		if err := json.Unmarshal([]byte(less), &lost); err != nil || !lost.Spent() {
			t.Errorf("%s has uses: %v", less, err)
		}
	}
}

func TestDerivedGrantsHaveWhatTheParentLeaves(t *testing.T) {
	t.Parallel()
	parent := given(t, "tool:f*", func(r *Request) { r.Expires, r.Uses = now.Add(time.Hour), 3 })
	g, err := Derive(parent, wanted(t, "tool:find"), now)
	if err != nil || g.Parent != "root" || g.Depth != 1 || !g.Expires.Equal(parent.Expires) || g.UsesLeft != 3 || g.Pattern != "find" || g.ID != "child" {
		t.Errorf("%+v, %v", g, err)
	}
	less := wanted(t, "tool:find")
	less.Expires, less.Uses = now.Add(time.Minute), 1
	if g, err := Derive(parent, less, now); err != nil || !g.Expires.Equal(less.Expires) || g.UsesLeft != 1 {
		t.Errorf("%+v, %v", g, err)
	}
	if g, err := Derive(given(t, "tool:f*", nil), wanted(t, "tool:f*"), now); err != nil || g.UsesLeft != Unlimited || !g.Expires.IsZero() {
		t.Errorf("%+v, %v", g, err)
	}
}

func TestWhatIsWiderIsNotDerived(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		name, parent, want string
		parents            func(*Grant)
		wants              func(*Request)
		message            string
	}{
		{name: "another kind", parent: "tool:x", want: "model:x", message: "does not cover"},
		{name: "a wider scope", parent: "state:/a:rw", want: "state:/ab", message: "does not cover"},
		{name: "wider rights", parent: "state:/a:ro", want: "state:/a:rw", message: "does not cover"},
		{name: "later", parent: "tool:x", want: "tool:x", parents: func(g *Grant) { g.Expires = now.Add(1) }, wants: func(r *Request) { r.Expires = now.Add(2) }, message: "expires before"},
		{name: "more uses", parent: "tool:x", want: "tool:x", parents: func(g *Grant) { g.UsesLeft = 2 }, wants: func(r *Request) { r.Uses = 3 }, message: "has 2 uses left"},
		{name: "any number of uses", parent: "tool:x", want: "tool:x", parents: func(g *Grant) { g.UsesLeft = 2 }, wants: func(r *Request) { r.Uses = Unlimited }, message: "has 2 uses left"},
		{name: "from a spent one", parent: "tool:x", want: "tool:x", parents: func(g *Grant) { g.UsesLeft = 0 }, message: "no uses left"},
		{name: "from an expired one", parent: "tool:x", want: "tool:x", parents: func(g *Grant) { g.Expires = now }, message: "expired at"},
		{name: "too deep", parent: "tool:x", want: "tool:x", parents: func(g *Grant) { g.Depth = DepthMost }, message: "above it already"},
		{name: "metadata", parent: "net:metadata", want: "net:metadata", message: "only root's agents"},
		{name: "a metadata service", parent: "net:metadata", want: "net:169.254.169.254", message: "only root's agents"},
		{name: "the host", parent: "net:host", want: "net:host:80", message: "only root's agents"},
	} {
		parent, want := given(t, row.parent, nil), wanted(t, row.want)
		if row.parents != nil {
			row.parents(&parent)
		}
		if row.wants != nil {
			row.wants(&want)
		}
		g, err := Derive(parent, want, now)
		var known *agent.Error
		if !errors.As(err, &known) || known.Kind != agent.KindPrivilege || known.Hint == "" || !strings.Contains(known.Message, row.message) || g != (Grant{}) {
			t.Errorf("%s: %+v, %#v", row.name, g, err)
		}
	}
	damaged := given(t, "tool:x", nil)
	damaged.Pattern = "**"
	if _, err := Derive(damaged, wanted(t, "tool:x"), now); err == nil {
		t.Error("a damaged row passes something on")
	}
}

func TestDepthIsBounded(t *testing.T) {
	t.Parallel()
	g := given(t, "tool:x", nil)
	for range DepthMost {
		child, err := Derive(g, wanted(t, "tool:x"), now)
		if err != nil {
			t.Fatalf("at depth %d: %v", g.Depth, err)
		}
		g = child
	}
	if _, err := Derive(g, wanted(t, "tool:x"), now); agent.KindOf(err) != agent.KindPrivilege {
		t.Errorf("at depth %d: %v", g.Depth, err)
	}
}

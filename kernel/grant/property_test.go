package grant

import (
	"errors"
	"fmt"
	"regexp"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

// trusted decides again, by other means than the package, whether wide allows a concrete
// request.
func trusted(t *testing.T, wide, what Scope) bool {
	switch wide.kind {
	case Tool, Model:
		if what.rights != NoRights && what.rights != wide.rights {
			return false
		}
		pattern := strings.ReplaceAll(regexp.QuoteMeta(wide.pattern), `\*`, ".*")
		return regexp.MustCompile("^(?s:" + pattern + ")$").MatchString(what.pattern)
	case State, Audit:
		if wide.rights == ReadOnly && what.rights == ReadWrite {
			return false
		}
		return within(parts(wide.pattern), parts(what.pattern))
	case Net:
		return trustedNet(t, wide, what)
	}
	return wide == what
}

func parts(path string) []string {
	return strings.FieldsFunc(path, func(r rune) bool { return r == '/' })
}

func within(wide, narrow []string) bool {
	if len(narrow) < len(wide) {
		return false
	}
	for i, part := range wide {
		if narrow[i] != part {
			return false
		}
	}
	return true
}

// trustedNet asks the gate's own decisions, with the one rule that the scope means.
func trustedNet(t *testing.T, wide, what Scope) bool {
	rules, err := egress.New(egress.Config{Rules: []agent.EgressRule{{Target: wide.pattern}}})
	if err != nil {
		t.Fatal(err)
	}
	proto, place := egress.TCP, strings.TrimPrefix(what.pattern, "tcp://")
	if after, found := strings.CutPrefix(place, "udp://"); found {
		proto, place = egress.UDP, after
	}
	host, asked := place, []uint16{80, 443}
	if cut := strings.LastIndexByte(place, ':'); cut > strings.LastIndexByte(place, ']') {
		host, asked = place[:cut], make([]uint16, 1)
		if _, err := fmt.Sscan(place[cut+1:], &asked[0]); err != nil {
			t.Fatal(err)
		}
	}
	for _, port := range asked {
		if !connects(t, rules, host, port, proto) {
			return false
		}
	}
	return true
}

// connects returns the last of the decisions on the way to a connection.
func connects(t *testing.T, rules *egress.Rules, host string, port uint16, proto egress.Proto) bool {
	findings, err := rules.Why(host, port, proto)
	if err != nil {
		t.Fatal(err)
	}
	return findings[len(findings)-1].Verdict.Allowed
}

// derived draws a chain, from the last grant to the root.
func (w world) derived(t *testing.T, kind Kind) []Grant {
	want := func() Request {
		r := Request{ID: fmt.Sprint(w.Uint64()), Scope: w.scope(kind), Holder: "h", Giver: "g"}
		if w.IntN(3) == 0 {
			r.Expires = now.Add(time.Duration(1 + w.IntN(100)))
		}
		if kind != Net && w.IntN(3) == 0 {
			r.Uses = int64(1 + w.IntN(5))
		}
		return r
	}
	root, err := New(want(), now)
	if err != nil {
		t.Fatal(err)
	}
	chain := []Grant{root}
	for range 24 {
		if g, err := Derive(chain[0], want(), now.Add(time.Duration(w.IntN(50)))); err == nil {
			chain = append([]Grant{g}, chain...)
		}
	}
	return chain
}

// TestNoChainAllowsMoreThanItsRoot is the property of the package: whatever was derived, a
// concrete request that the last grant allows, its root allows, at the same moment.
func TestNoChainAllowsMoreThanItsRoot(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	derived, allowed := map[Kind]int{}, map[Kind]int{}
	for range 6000 {
		kind := drawnKinds[w.IntN(len(drawnKinds))]
		chain := w.derived(t, kind)
		last, root := chain[0], chain[len(chain)-1]
		derived[kind] += len(chain) - 1
		rootScope, err := root.Scope()
		if err != nil {
			t.Fatal(err)
		}
		for range 40 {
			what, at := w.request(kind), now.Add(time.Duration(w.IntN(120)))
			if _, _, ok := Check([]Grant{last}, what, at); !ok {
				continue
			}
			allowed[kind]++
			if !trusted(t, rootScope, what) || root.Expired(at) {
				t.Fatalf("%s is allowed to %+v, derived from %+v by %d grants", what, last, root, len(chain)-1)
			}
		}
	}
	for _, kind := range drawnKinds {
		if derived[kind] < 300 || allowed[kind] < 300 {
			t.Errorf("control: of kind %s %d grants were derived, %d requests allowed", kind, derived[kind], allowed[kind])
		}
	}
}

// TestNoDerivedGrantOpensMoreThanItsRoot at the gate, on a host with addresses of its own.
func TestNoDerivedGrantOpensMoreThanItsRoot(t *testing.T) {
	t.Parallel()
	w, opened := newWorld(t), 0
	compiled := func(g Grant) *egress.Rules {
		rules, err := egress.New(egress.Config{Mode: agent.NetworkAllowlist, Rules: Rules([]Grant{g}, isHost, now), IsHost: isHost})
		if err != nil {
			t.Fatal(err)
		}
		return rules
	}
	for range 3000 {
		chain := w.derived(t, Net)
		if len(chain) == 1 {
			continue
		}
		last, root := compiled(chain[0]), compiled(chain[len(chain)-1])
		for range 60 {
			c := w.connection()
			if !last.Connect(c).Allowed {
				continue
			}
			opened++
			if v := root.Connect(c); !v.Allowed {
				t.Fatalf("%+v opens %+v, derived from %+v: %s", chain[0], c, chain[len(chain)-1], v.Detail)
			}
		}
	}
	if opened < 300 {
		t.Errorf("control: %d connections were opened", opened)
	}
}

// TestTogetherNoMoreUsesThanTheRoot: a tree of grants, used at random until nothing is left.
func TestTogetherNoMoreUsesThanTheRoot(t *testing.T) {
	t.Parallel()
	w, total := newWorld(t), 0
	for range 300 {
		root := given(t, "tool:x", func(r *Request) { r.Uses = int64(1 + w.IntN(9)) })
		rows, ids, used := map[string]Grant{root.ID: root}, []string{root.ID}, int64(0)
		chain := func(id string) (chain []Grant) {
			for ; id != ""; id = rows[id].Parent {
				chain = append(chain, rows[id])
			}
			return chain
		}
		for range 60 {
			above := chain(ids[w.IntN(len(ids))])
			parent, err := Effective(above)
			if err != nil {
				t.Fatal(err)
			}
			want := wanted(t, "tool:x")
			want.ID, want.Uses = fmt.Sprint(len(ids)), int64(w.IntN(4))
			if g, err := Derive(parent, want, now); err == nil {
				rows[g.ID], ids = g, append(ids, g.ID)
			}
			changed, err := Use(above, now)
			if _, _, ok := Check([]Grant{parent}, want.Scope, now); ok != (err == nil) {
				t.Fatalf("a check says %t, and a use %v", ok, err)
			}
			for _, g := range changed {
				rows[g.ID] = g
			}
			if err == nil {
				used++
			}
		}
		if used > root.UsesLeft || rows["root"].UsesLeft != root.UsesLeft-used {
			t.Fatalf("%d uses of %d, %d are left", used, root.UsesLeft, rows["root"].UsesLeft)
		}
		total += int(used)
	}
	if total < 300 {
		t.Errorf("control: %d uses", total)
	}
}

// TestCoverageAgreesWithItsRequests: where one scope covers another, it allows each request
// that the other allows; and it covers what that one covers.
func TestCoverageAgreesWithItsRequests(t *testing.T) {
	t.Parallel()
	w, covered := newWorld(t), 0
	for range 60_000 {
		kind := drawnKinds[w.IntN(len(drawnKinds))]
		a, b, c := w.scope(kind), w.scope(kind), w.scope(kind)
		if err := checkCoverage(a, b, c); err != nil {
			t.Fatal(err)
		}
		what := w.request(kind)
		if a.Allows(what) && !trusted(t, a, what) {
			t.Fatalf("%s allows %s", a, what)
		}
		if a.Covers(b) {
			covered++
		}
	}
	if covered < 1000 {
		t.Errorf("control: %d were covered", covered)
	}
}

// checkCoverage returns an error if Covers is not reflexive and transitive on these scopes.
func checkCoverage(scopes ...Scope) error {
	for _, a := range scopes {
		if !a.Covers(a) {
			return fmt.Errorf("%s does not cover itself", a)
		}
		for _, b := range scopes {
			for _, c := range scopes {
				if a.Covers(b) && b.Covers(c) && !a.Covers(c) {
					return errors.New(a.String() + " covers " + b.String() + ", which covers " + c.String() + ", which the first does not")
				}
			}
		}
	}
	return nil
}

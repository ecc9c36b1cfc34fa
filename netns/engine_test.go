package netns

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"github.com/google/nftables/expr"
)

func TestEnginePlanGoldens(t *testing.T) {
	t.Parallel()
	for name, plan := range map[string]Plan{
		"engine_silent":       {engine: true, owner: "7-42", policy: "c10e"},
		"engine":              {engine: true, everything: true, ipv6: true, owner: "7-42", policy: "c10e"},
		"engine_without_ipv6": {engine: true, everything: true, owner: "7-42", policy: "c10e"},
	} {
		got := plan.String()
		path := filepath.Join("testdata", name+".golden")
		if *update {
			if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		want, err := os.ReadFile(path)
		if err != nil || got != string(want) {
			t.Errorf("%v; %s says\n%s\nthe plan is\n%s", err, path, want, got)
		}
	}
}

// TestOnlyTheGateAndAnswersLeave checks what the last chain accepts, whatever the chains
// before it do.
func TestOnlyTheGateAndAnswersLeave(t *testing.T) {
	t.Parallel()
	for _, plan := range []Plan{{engine: true}, {engine: true, everything: true, ipv6: true}} {
		last := plan.chains()[len(plan.chains())-1]
		if last.hook != postrouting || last.open {
			t.Fatalf("the last chain is %+v", last)
		}
		var dns int
		for _, r := range last.rules {
			m := r.match
			if r.action == drop && r.port == dnsPort {
				dns++
				continue
			}
			if m.replies && dns != 2 {
				t.Error("an answer may be a question to a name server")
			}
			known := m.out == "lo" || plan.everything && (m.mark == markGate && !m.otherMark || m.replies || m.icmp != 0)
			if r.action != accept || !known {
				t.Errorf("%s may leave", r)
			}
		}
	}
}

// TestMatchesAreWhatTheyLookLike: the text form and the kernel's instructions are made
// separately.
func TestMatchesAreWhatTheyLookLike(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		match match
		words string
		first expr.Any
		cmp   expr.CmpOp
	}{
		{match{in: "lo"}, "iif lo", &expr.Meta{Key: expr.MetaKeyIIF, Register: 1}, expr.CmpOpEq},
		{match{in: "lo", otherIn: true}, "iif != lo", &expr.Meta{Key: expr.MetaKeyIIF, Register: 1}, expr.CmpOpNeq},
		{match{out: "lo"}, "oif lo", &expr.Meta{Key: expr.MetaKeyOIF, Register: 1}, expr.CmpOpEq},
		{match{receiver: 7}, "socket mark 0x7", &expr.Socket{Key: expr.SocketKeyMark, Register: 1}, expr.CmpOpEq},
		{match{mark: 7}, "meta mark 0x7", &expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, expr.CmpOpEq},
		{match{mark: 7, otherMark: true}, "meta mark != 0x7", &expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, expr.CmpOpNeq},
	} {
		got := c.match.expressions()
		if words := c.match.words(); len(words) != 1 || words[0] != c.words {
			t.Errorf("%+v is %q", c.match, words)
		}
		if len(got) != 2 || !reflect.DeepEqual(got[0], c.first) || got[1].(*expr.Cmp).Op != c.cmp {
			t.Errorf("%s is %+v", c.words, got)
		}
	}
}

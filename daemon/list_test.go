package daemon

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
)

// listText returns the answer of run.list, with enough memory allowed for it.
func (r *rig) listText(c *request, p api.ListParams) json.RawMessage {
	r.t.Helper()
	result, err := r.d.runs().list(c, p)
	must(r.t, err)
	text, err := result.make()
	must(r.t, err)
	return text.(json.RawMessage)
}

func (r *rig) listed(c *request, p api.ListParams) (answer api.ListResult) {
	r.t.Helper()
	must(r.t, json.Unmarshal(r.listText(c, p), &answer))
	return answer
}

// Page after page returns each run once, newest first, whatever happens to other runs in
// between, and no page exceeds its bounds.
func TestListByPages(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	r.large(4)
	want := r.d.cache.list(member.sees)
	for _, p := range []api.ListParams{{}, {All: true}, {Limit: 3, Brief: true}, {Brief: true}} {
		var got []agent.ID
		for {
			if text := r.listText(r.as(member), p); len(text) > answerReserve {
				t.Errorf("%+v: %d bytes", p, len(text))
			}
			part := r.listed(r.as(member), p)
			if len(part.Runs) == 0 || p.Limit > 0 && len(part.Runs) > p.Limit || len(part.Reasons) != len(part.Runs) {
				t.Fatalf("%+v: %d runs, %d reasons", p, len(part.Runs), len(part.Reasons))
			}
			for _, run := range part.Runs {
				got = append(got, run.Spec.ID)
			}
			if p.After = part.Next; p.After == "" {
				break
			}
			r.add("new-"+string(agent.NewID()), otherCaller.owner, agent.StateQueued)
		}
		if !slices.EqualFunc(got, want, func(id agent.ID, run *agent.Run) bool { return id == run.Spec.ID }) {
			t.Errorf("%+v: %v", p, got)
		}
	}
	for _, bad := range []api.ListParams{{After: "x"}, {After: "1-"}, {After: "x-0123456789abcdef"}, {Limit: -1}} {
		_, err := r.d.runs().list(r.as(member), bad)
		wantCode(t, err, api.CodeParams)
	}
}

// A table shows only the beginning of a long command.
func TestBriefCommand(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ arguments, want []string }{
		{[]string{"a", "b"}, []string{"a", "b"}},
		{[]string{"a", strings.Repeat("ü", briefCommandBytes), "b"}, []string{"a", strings.Repeat("ü", briefCommandBytes/2-1)}},
		{[]string{strings.Repeat("x", briefCommandBytes), "b", "c"}, []string{strings.Repeat("x", briefCommandBytes), ""}},
	} {
		before := slices.Clone(c.arguments)
		if got := briefCommand(c.arguments); !slices.Equal(got, c.want) || !slices.Equal(before, c.arguments) {
			t.Errorf("%.40q: %.40q", c.arguments, got)
		}
	}
}

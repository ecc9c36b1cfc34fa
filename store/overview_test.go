package store

import (
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func TestOverview(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	run, err := s.Begin(newRun("one"))
	must(t, err)
	o, err := s.Overview()
	must(t, err)
	keys := map[string]int{}
	for _, b := range o.Buckets {
		keys[b.Name] = b.Keys
		if b.Name == "occurrences" && b.Sequence != 1 || b.Keys > 0 && b.Bytes == 0 {
			t.Errorf("%+v", b)
		}
	}
	if o.Schema != o.Newest || o.Bytes == 0 || o.PageSize == 0 || o.Revision == 0 || o.Path != s.path ||
		keys["runs"] != 1 || keys["names"] != 1 || keys["leases"] != 1 || keys["occurrences"] != 1 || keys["meta"] != 1 {
		t.Errorf("%+v", o)
	}
	for _, ref := range []string{"one", string(run.Spec.ID), string(run.Spec.ID)[:8]} {
		raw, err := s.Raw(ref)
		must(t, err)
		if !strings.Contains(string(raw), `"name":"one"`) {
			t.Errorf("%s: %s", ref, raw)
		}
	}
	if _, err := s.Raw("two"); agent.KindOf(err) != agent.KindNotFound {
		t.Error(err)
	}
}

func TestHistoryIsTheLast(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	if past, err := s.History(3); err != nil || len(past) != 0 {
		t.Errorf("%v, %v", past, err)
	}
	for _, name := range []string{"a", "b", "c", "d"} {
		_, err := s.Begin(newRun(name))
		must(t, err)
	}
	past, err := s.History(3)
	must(t, err)
	if len(past) != 3 || past[0].Name != "b" || past[2].Name != "d" {
		t.Errorf("%+v", past)
	}
}

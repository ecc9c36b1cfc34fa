package store

import (
	"slices"
	"testing"
	"time"

	"clove.run/clove/agent"
)

func TestGet(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	ids := []agent.ID{"aaaa000000000001", "aaaa000000000002", "bbbb000000000003"}
	names := []string{"first", "bbbb", "aaaa000000000"}
	for i, id := range ids {
		run := newRun(names[i])
		run.Spec.ID = id
		_, err := s.Begin(run)
		must(t, err)
	}
	cases := map[string]struct {
		want agent.ID
		kind agent.Kind
	}{
		"aaaa000000000001":  {want: ids[0]},
		"first":             {want: ids[0]},
		"bbbb000":           {want: ids[2]},
		"bbbb":              {want: ids[1]}, // a name comes before a prefix of an id
		"aaaa000000000":     {want: ids[2]},
		"aaaa00000000000":   {kind: agent.KindInvalid},
		"aaaa":              {kind: agent.KindInvalid},
		"bbb":               {kind: agent.KindNotFound}, // too short for a prefix
		"cccc":              {kind: agent.KindNotFound},
		"BBBB000":           {kind: agent.KindNotFound},
		"":                  {kind: agent.KindNotFound},
		"firs":              {kind: agent.KindNotFound}, // names have no prefixes
		"bbbb0000000000030": {kind: agent.KindNotFound},
	}
	for ref, c := range cases {
		t.Run(ref, func(t *testing.T) {
			run, err := s.Get(ref)
			if c.kind != "" {
				wantKind(t, err, c.kind)
				return
			}
			must(t, err)
			if run.Spec.ID != c.want {
				t.Errorf("got %s, want %s", run.Spec.ID, c.want)
			}
		})
	}
}

func TestListIsNewestFirst(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	if all, err := s.List(); err != nil || len(all) != 0 {
		t.Fatalf("an empty store lists %d runs, %v", len(all), err)
	}
	var want []agent.ID
	for _, second := range []int64{5, 9, 1, 7} {
		run := newRun("")
		run.Created = time.Unix(second, 0).UTC()
		_, err := s.Begin(run)
		must(t, err)
		want = append(want, run.Spec.ID)
	}
	all, err := s.List()
	must(t, err)
	var got []agent.ID
	for _, run := range all {
		got = append(got, run.Spec.ID)
	}
	if order := []agent.ID{want[1], want[3], want[0], want[2]}; !slices.Equal(got, order) {
		t.Errorf("got %v, want %v", got, order)
	}
}

func TestLiveIsWhoHoldsALease(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	var want []agent.ID
	for i := range 4 {
		run, err := s.Begin(newRun(""))
		must(t, err)
		if i == 1 {
			_, err = endRun(s, run.Spec)
			must(t, err)
			continue
		}
		want = append(want, run.Spec.ID)
	}
	wantLive(t, s, everyRun, want) // ranges 0, 1 again, 2
	wantLive(t, s, func(id agent.ID) bool { return id != want[1] }, []agent.ID{want[0], want[2]})
}

func everyRun(agent.ID) bool { return true }

func wantLive(t *testing.T, s *Store, wanted func(agent.ID) bool, want []agent.ID) {
	t.Helper()
	live, err := s.Live(wanted)
	must(t, err)
	var got []agent.ID
	for _, run := range live {
		got = append(got, run.Spec.ID)
	}
	if !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

// A run that has nothing on the host is known by its id only.
func TestSomeAndIDs(t *testing.T) {
	t.Parallel()
	s := openNew(t)
	var all []agent.ID
	for _, name := range []string{"a", "b", "c"} {
		run, err := s.Begin(newRun(name))
		must(t, err)
		all = append(all, run.Spec.ID)
	}
	_, err := endRun(s, agent.Spec{ID: all[1], Name: "b"})
	must(t, err)
	ids, err := s.IDs()
	must(t, err)
	if len(ids) != 3 || !ids[all[0]] || !ids[all[1]] || !ids[all[2]] {
		t.Errorf("%v, want %v", ids, all)
	}
	runs, err := s.Some([]agent.ID{all[1], "nobody", "", all[2]})
	must(t, err)
	if len(runs) != 2 || runs[0].Spec.Name != "b" || runs[0].State != agent.StateEnded || runs[1].Spec.ID != all[2] {
		t.Errorf("%+v", runs)
	}
}

package control

import (
	"fmt"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/models/link"
)

func namesOf(all []api.Model) string {
	var names []string
	for _, m := range all {
		names = append(names, m.Name)
	}
	return strings.Join(names, " ")
}

// A user sees what the user's agents may call, and an alias as what it stands for.
func TestListIsTheUsers(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	const everyones = "echo free metered queued scripted small tiny"
	for uid, want := range map[uint32]string{2000: everyones, 1000: strings.Replace(everyones, "metered", "haiku metered", 1), 0: strings.Replace(everyones, "metered", "haiku metered", 1)} {
		all := r.List(agent.Owner{UID: uid, GID: uid})
		if got := namesOf(all); got != want {
			t.Errorf("%d sees %s, want %s", uid, got, want)
		}
		tiny := all[len(all)-1]
		if tiny.AliasOf != "small" || tiny.Context != 10000 || tiny.MaxOut != 500 || !tiny.Priced || fmt.Sprint(tiny.Formats) != "[openai-chat openai-responses]" ||
			fmt.Sprint(tiny.Targets) != "[{p theirs 1 0 true ok}]" {
			t.Errorf("%+v", tiny)
		}
	}
	for _, m := range List(r.config.Load(), agent.Owner{}) {
		if m.Targets[0].Health != "" || m.Name == "free" && m.Priced || m.Name == "echo" && len(m.Formats) != 4 {
			t.Errorf("%+v", m)
		}
	}
}

// Health is what became of the calls before.
func TestListShowsHealth(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	health := func(uid uint32) string {
		for _, m := range r.List(agent.Owner{UID: uid}) {
			if m.Name == "small" {
				return m.Targets[0].Health
			}
		}
		return "none"
	}
	targets, err := r.config.Load().Resolve("small", 0, nil)
	if err != nil {
		t.Fatal(err)
	}
	ends := func(run agent.ID, d link.Done) {
		by := agent.Run{Spec: agent.Spec{ID: run}, Owner: agent.Owner{UID: 1000}}
		r.desk.health.report(newServed(by, nil).caller(), targets[0], d, false)
	}
	for i, row := range []struct {
		run  agent.ID
		want string
	}{{"a", api.HealthFailing}, {"a", api.HealthFailing}, {"a", api.HealthFailing}, {"b", api.HealthOut}} {
		ends(row.run, link.Done{Status: 503})
		if got := health(0); got != row.want || health(1000) != row.want || health(2000) != api.HealthOK {
			t.Errorf("after %d failures: %s, %s and %s for another", i+1, got, health(1000), health(2000))
		}
	}
	if ends("b", link.Done{Status: 200, First: 1}); health(0) != api.HealthOK {
		t.Errorf("after a success: %s", health(0))
	}
	if ends("b", link.Done{Unreached: true}); health(2000) != api.HealthFailing {
		t.Errorf("nobody reaches it: %s", health(2000))
	}
}

func TestLeast(t *testing.T) {
	t.Parallel()
	for _, row := range [][3]int64{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {3, 5, 3}, {5, 3, 3}} {
		if got := least(row[0], row[1]); got != row[2] {
			t.Errorf("%v: %d", row, got)
		}
	}
}

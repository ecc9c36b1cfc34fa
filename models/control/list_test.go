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
	health := func() string {
		for _, m := range r.List(agent.Owner{}) {
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
	for i, want := range []string{api.HealthFailing, api.HealthFailing, api.HealthOut} {
		r.health.report(targets[0], link.Done{Status: 503}, false)
		if got := health(); got != want {
			t.Errorf("after %d failures: %s, want %s", i+1, got, want)
		}
	}
	if r.health.report(targets[0], link.Done{Status: 200, First: 1}, false); health() != api.HealthOK {
		t.Errorf("after a success: %s", health())
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

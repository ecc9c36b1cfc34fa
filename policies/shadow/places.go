package shadow

import (
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/settings"
)

// Wider are the places in which the shadow of a spec allows more than the spec itself.
func Wider(spec agent.Spec) []string { return placesOf(settings.Wider(spec, spec.Shadowed())) }

// decided are the places of which a run's end says whether the shadow would have mattered.
var decided = []string{
	"limits.memory", "limits.pids", "limits.cpu_time", "limits.timeout", "limits.output", "limits.disk",
	"network.mode", "network.allow", "network.deny", "network.host_ports", "network.bytes", "network.connections",
	"models", "grants", "budgets", "on_denial",
}

// byCalls are the places of which system calls say it, where they are looked at.
var byCalls = []string{"seccomp", "files.root", "files.writable", "files.execute"}

// Unseen are the places in which the shadow of a spec allows less, and of which nothing is
// known at the end. Without a gate no process decides over connections, and without a filter
// that reports to the supervisor no process looks at calls.
func Unseen(spec agent.Spec, calls bool) []string {
	gated := spec.Shadowed().Gated()
	return slices.DeleteFunc(placesOf(settings.Wider(spec.Shadowed(), spec)), func(place string) bool {
		switch {
		case !strings.HasPrefix(place, "network."):
			return slices.Contains(decided, place) || calls && slices.Contains(byCalls, place)
		case spec.Network == agent.NetworkHost:
			return false
		}
		return !gated || slices.Contains(decided, place) // without a network its rate says nothing
	})
}

func placesOf(all []settings.Difference) (places []string) {
	for _, d := range all {
		if !slices.Contains(places, d.Place) {
			places = append(places, d.Place)
		}
	}
	return places
}

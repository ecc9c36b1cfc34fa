package main

import (
	"slices"
	"strings"

	"clove.run/clove/agent"
)

const flagFilter = "filter"

// filter is one --filter of ps.
type filter struct{ key, value string }

// The keys, which are docker's where it has them.
const (
	filterName  = "name"
	filterState = "state"
	filterLabel = "label"
	filterTeam  = "team"
)

// filterKeys says for each key how a run matches a value.
var filterKeys = map[string]func(run agent.Run, value string) bool{
	filterName: func(run agent.Run, value string) bool { return strings.Contains(shown(run.Name()), value) },
	filterState: func(run agent.Run, value string) bool {
		return value == string(run.State) || value == stateName(run) || run.Record != nil && value == string(run.Record.Status)
	},
	filterLabel: func(run agent.Run, value string) bool {
		key, wanted, valued := strings.Cut(value, "=")
		have, found := run.Spec.Labels[key]
		return found && (!valued || have == wanted)
	},
	filterTeam: func(run agent.Run, value string) bool { return ofTeam(run, value) },
}

// The ends that a status does not say: the agent's own, after a request, or not the last of
// several.
const (
	endStopped = "stopped"
	endGivenUp = "given-up"
	endLost    = "lost"
)

// stateName is the state as ps shows it: for an ended run its end, which says more than the
// state.
func stateName(run agent.Run) string {
	switch {
	case run.Record != nil && run.Record.Lost():
		return endLost
	case run.Record != nil && run.Record.Limit == nil && run.Stopped() != nil:
		return endStopped
	case run.Phase() == agent.PhaseGivenUp:
		return endGivenUp
	case run.Record != nil:
		return string(run.Record.Status)
	case run.Paused():
		return "paused"
	}
	return string(run.State)
}

// parseFilters reads KEY=VALUE. An unknown state is an error: it would silently match
// nothing.
func parseFilters(texts []string) ([]filter, error) {
	var all []filter
	for _, text := range texts {
		key, value, found := strings.Cut(text, "=")
		if filterKeys[key] == nil || !found || value == "" {
			return nil, invalid(flagFilter, "write name=PART, state=STATE, team=TEAM, label=KEY or label=KEY=VALUE", "%q is not a filter", text)
		}
		if key == filterState && !slices.Contains(stateNames, value) {
			return nil, invalid(flagFilter, "it is one of "+strings.Join(stateNames, ", "), "there is no state %q", value)
		}
		all = append(all, filter{key, value})
	}
	return all, nil
}

// stateNames are all that ps can show. "ended" matches every status.
var stateNames = func() []string {
	names := []string{"paused", endStopped, endGivenUp, endLost}
	for _, state := range agent.States {
		names = append(names, string(state))
	}
	for _, status := range agent.Statuses {
		names = append(names, string(status))
	}
	return names
}()

func (f filter) matches(run agent.Run) bool { return filterKeys[f.key](run, f.value) }

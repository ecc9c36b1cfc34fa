package main

import (
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
)

// readDetached reads what only cloved can do. In the foreground it is refused:
// nobody would be there to hold to it.
func (r *request) readDetached() (err error) {
	r.spec.Detached = r.flags.Bool(flagDetach)
	if !r.spec.Detached {
		for _, flag := range []string{flagRestart, flagPriority, flagDelay, flagSchedule} {
			if r.flags.String(flag) != "" {
				return invalid(flag, "add -d", "only cloved can do that")
			}
		}
		if len(r.flags.StringSlice(flagAfter)) > 0 {
			return invalid(flagAfter, "add -d", "only cloved can do that")
		}
		if r.flags.Bool(flagKeep) {
			return invalid(flagKeep, "add -d and --schedule", "only cloved can do that")
		}
		return nil
	}
	for _, flag := range []string{flagResult, flagNetworkLog} {
		if r.flags.String(flag) != "" {
			return invalid(flag, "leave it away: clove inspect and clove wait --json show the record", "it does not go together with -d")
		}
	}
	r.spec.Stdin = r.flags.Bool(flagInteractive)
	r.spec.After = r.flags.StringSlice(flagAfter)
	if r.spec.Restart, err = parseRestart(r.flags.String(flagRestart)); err != nil {
		return err
	}
	if r.flags.IsSet(flagSchedule) && r.flags.String(flagSchedule) == "" {
		return invalid(flagSchedule, "write \"MINUTE HOUR DAY MONTH WEEKDAY\" or @hourly, or leave it away", "it is empty")
	}
	// cloved reads it, in its own time zone.
	r.spec.Schedule, r.spec.KeepFiles = r.flags.String(flagSchedule), r.flags.Bool(flagKeep)
	if r.spec.Remove && r.spec.Restart.Policy.Restarts() {
		return invalid(flagRestart, "leave --rm away", "a run that keeps nothing cannot be restarted")
	}
	if text := r.flags.String(flagPriority); text != "" {
		if r.spec.Priority, err = strconv.Atoi(text); err != nil || r.spec.Priority < -agent.PriorityCeiling || r.spec.Priority > agent.PriorityCeiling {
			return invalid(flagPriority, "write a number from -1000 to 1000", "%q is not a priority", text)
		}
	}
	return nil
}

// parseRestart reads docker's POLICY[:MAX].
func parseRestart(text string) (agent.Restart, error) {
	word, number, counted := strings.Cut(text, ":")
	restart := agent.Restart{Policy: agent.RestartPolicy(word)}
	if text == "" {
		restart.Policy = agent.RestartNever
	}
	if !slices.Contains(agent.RestartPolicies, restart.Policy) {
		return restart, invalid(flagRestart, "write never, on-failure, on-failure:5 or always", "%q is not a restart policy", text)
	}
	if !counted {
		return restart, nil
	}
	var err error
	if restart.Max, err = strconv.Atoi(number); err != nil || restart.Max < 1 || restart.Policy == agent.RestartNever {
		return restart, invalid(flagRestart, "write on-failure:5 or always:5", "%q is not a restart policy", text)
	}
	return restart, nil
}

package build

import (
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
)

// readDetached reads what only cloved can do. A foreground run refuses it: nothing would
// restart or start that run once clove run has ended.
func (b *builder) readDetached() (err error) {
	b.spec.Detached = b.asked.Detached
	if !b.spec.Detached {
		return b.refuseDetached()
	}
	if err := b.readRestart(); err != nil {
		return err
	}
	// Names are not looked up here: the other runs may not exist yet.
	b.spec.After = b.asked.After
	// cloved parses the schedule: it runs in its time zone.
	b.spec.Schedule, b.spec.KeepFiles = b.asked.Schedule, b.asked.KeepFiles
	if b.spec.Remove && b.spec.Restart.Policy.Restarts() {
		return invalid("restart", "omit --rm", "a run that is removed when it ends cannot be restarted")
	}
	if text := b.asked.Priority; text != "" {
		if b.spec.Priority, err = strconv.Atoi(text); err != nil || b.spec.Priority < -agent.PriorityCeiling || b.spec.Priority > agent.PriorityCeiling {
			return invalid("priority", "write a number from -1000 to 1000", "%q is not a priority", text)
		}
	}
	return nil
}

// refuseDetached refuses each field by its name: ignored, it would be a restart policy that
// is not carried out.
func (b *builder) refuseDetached() error {
	for _, field := range []struct {
		name, hint string
		asked      bool
	}{
		{"restart", "add -d", b.asked.Restart != ""},
		{"priority", "add -d", b.asked.Priority != ""},
		{"schedule", "add -d", b.asked.Schedule != ""},
		{"after", "add -d", len(b.asked.After) > 0},
		{"keep-files", "add -d and --schedule", b.asked.KeepFiles},
	} {
		if field.asked {
			return invalid(field.name, field.hint, "only cloved can do that")
		}
	}
	return nil
}

// readRestart reads the restart policy, and whether stdin stays open. In a foreground run
// stdin is always passed on.
func (b *builder) readRestart() (err error) {
	b.spec.Stdin = b.asked.Interactive
	b.spec.Restart, err = parseRestart(b.asked.Restart)
	return err
}

// parseRestart reads docker's POLICY[:MAX].
func parseRestart(text string) (agent.Restart, error) {
	word, number, counted := strings.Cut(text, ":")
	restart := agent.Restart{Policy: agent.RestartPolicy(word)}
	if text == "" {
		restart.Policy = agent.RestartNever
	}
	if !slices.Contains(agent.RestartPolicies, restart.Policy) {
		return restart, invalid("restart", "write never, on-failure, on-failure:5 or always", "%q is not a restart policy", text)
	}
	if !counted {
		return restart, nil
	}
	var err error
	// A count with never is a mistake: there is nothing to count.
	if restart.Max, err = strconv.Atoi(number); err != nil || restart.Max < 1 || restart.Policy == agent.RestartNever {
		return restart, invalid("restart", "write on-failure:5 or always:5", "%q is not a restart policy", text)
	}
	return restart, nil
}

package settings

import (
	"slices"
	"strconv"
	"strings"
	"sync"

	"clove.run/clove/agent"
)

// Names of what cloved does that code asks for.
const (
	Detach      = "detach"
	Restart     = "restart"
	Schedule    = "schedule"
	KeepFiles   = "keep-files"
	Ready       = "ready"
	ReadyIn     = "ready-timeout"
	After       = "after"
	Priority    = "priority"
	Interactive = "interactive"
	TTY         = "tty"
	Remove      = "rm"
)

// Detached is what only cloved can do. A foreground run refuses it: nothing would restart or
// start that run once clove run has ended.
var Detached = sync.OnceValue(func() *Section {
	return &Section{After: checkDetached, Rows: []Setting{
		{
			Flag: Detach, Manifest: Detach, Short: "d", Form: Switch, On: "true", Group: GroupDetached, Usage: "run it under cloved, print its ID and return",
			Read: func(r *Reader, _ []string) error { r.Spec.Detached = !r.Image; return nil },
		},
		{
			Flag: Restart, Manifest: Restart, Group: GroupDetached, Usage: "when it has ended: never, on-failure[:MAX] or always[:MAX]", Default: "never",
			Read: one(readRestart),
		},
		{
			Flag: Priority, Manifest: Priority, Form: Amount, Group: GroupDetached, Usage: "among those that wait for memory, higher goes first", Default: "0",
			Pod:  "set the pod's priorityClassName",
			Read: one(readPriority),
		},
		// cloved parses the schedule: it runs in its time zone.
		{
			Flag: Schedule, Manifest: Schedule, Group: GroupDetached, Usage: "start it at each time of a cron expression, as \"0 3 * * *\" or @hourly; CRON_TZ=ZONE before it",
			Pod:  "put the Job's spec into a CronJob's jobTemplate",
			Read: text(func(s *agent.Spec) *string { return &s.Schedule }),
		},
		// Names are not looked up here: the other runs may not exist yet.
		{
			Flag: After, Manifest: After, Form: List, Flags: Join, Group: GroupDetached, Usage: "start only when this run has: NAME[:started], NAME:ready or NAME:ended",
			Pod:  "wait for another Job with kubectl wait, or use a workflow engine",
			Read: func(r *Reader, texts []string) error { r.Spec.After = texts; return nil },
		},
		{
			Flag: Ready, Manifest: Ready, Form: List, Group: GroupDetached, Usage: "a command inside that exits 0 when the agent is ready, once for each of its words",
			Pod:  "give the pod a readinessProbe",
			Read: func(r *Reader, texts []string) error { r.Spec.Ready.Command = texts; return nil },
		},
		{
			Flag: ReadyIn, Manifest: "ready_timeout", Form: Amount, Group: GroupDetached, Usage: "end it when it is not ready in this time", Default: "1m with --ready, else none",
			Pod: "give the pod a readinessProbe",
			Read: one(func(r *Reader, text string) (err error) {
				r.Spec.Ready.Within, err = ParseClock(ReadyIn, text)
				return err
			}),
		},
		{
			Flag: KeepFiles, Manifest: "keep_files", Form: Switch, On: "true", Group: GroupDetached, Usage: "with --schedule: continue with the files of the previous start",
			Pod:  "use a PersistentVolumeClaim",
			Read: yes(func(s *agent.Spec) *bool { return &s.KeepFiles }),
		},
	}}
})

// Result is how the run meets its caller.
var Result = sync.OnceValue(func() *Section {
	return &Section{Rows: []Setting{
		// In a foreground run stdin is always passed on.
		{
			Flag: Interactive, Manifest: Interactive, Short: "i", Form: Switch, On: "true", Group: GroupResult, Usage: "with -d: keep stdin open for clove attach; else it is always passed on",
			Read: func(r *Reader, _ []string) error { r.Spec.Stdin = r.Image || r.Has(Detach); return nil },
		},
		{
			Flag: TTY, Manifest: TTY, Short: "t", Form: Switch, On: "true", Group: GroupResult, Usage: "give the agent a terminal",
			Read: yes(func(s *agent.Spec) *bool { return &s.Terminal }),
		},
		{
			Flag: Remove, Manifest: "remove", Form: Switch, On: "true", Group: GroupResult, Usage: "keep neither record nor layer",
			Read: yes(func(s *agent.Spec) *bool { return &s.Remove }),
		},
	}}
})

// checkDetached gives a run of cloved's or of a cluster the policy never.
func checkDetached(r *Reader) error {
	restart := &r.Spec.Restart.Policy
	if *restart == "" && (r.Spec.Detached || r.Image) {
		*restart = agent.RestartNever
	}
	if ready := &r.Spec.Ready; len(ready.Command) > 0 && ready.Within == 0 {
		ready.Within = agent.ReadyWithin
	}
	if r.Has(Remove) && restart.Restarts() && !r.Image {
		return Invalid(Restart, "omit --rm", "a run that is removed when it ends cannot be restarted")
	}
	return nil
}

func readRestart(r *Reader, text string) (err error) {
	r.Spec.Restart, err = parseRestart(text)
	return err
}

func readPriority(r *Reader, text string) (err error) {
	if r.Spec.Priority, err = strconv.Atoi(text); err != nil || r.Spec.Priority < -agent.PriorityCeiling || r.Spec.Priority > agent.PriorityCeiling {
		return Invalid(Priority, "write a number from -1000 to 1000", "%q is not a priority", text)
	}
	return nil
}

// parseRestart reads docker's POLICY[:MAX].
func parseRestart(text string) (agent.Restart, error) {
	policy, number, counted := strings.Cut(text, ":")
	restart := agent.Restart{Policy: agent.RestartPolicy(policy)}
	if text == "" {
		restart.Policy = agent.RestartNever
	}
	if !slices.Contains(agent.RestartPolicies, restart.Policy) {
		return restart, Invalid(Restart, "write never, on-failure, on-failure:5 or always", "%q is not a restart policy", text)
	}
	if !counted {
		return restart, nil
	}
	var err error
	// A count with never is a mistake: there is nothing to count.
	if restart.Max, err = strconv.Atoi(number); err != nil || restart.Max < 1 || restart.Policy == agent.RestartNever {
		return restart, Invalid(Restart, "write on-failure:5 or always:5", "%q is not a restart policy", text)
	}
	return restart, nil
}

package spawn

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/kernel/grant"
	"clove.run/clove/kernel/service"
)

// question is what people see of a child that no grant covers: all that it would have.
func question(s *Spawn, c *service.Call, p api.SpawnParams, made *Prepared) (q service.Asking, err error) {
	m, err := s.granted(c, c, p.Manifest)
	if err != nil {
		return q, err
	}
	run, err := s.child(c, m, p, made, func(outer, inner string) bool { return made.beneath[[2]string{outer, inner}] })
	if err != nil {
		return q, err
	}
	q = service.Asking{What: "start a child from the manifest " + m.Name, Says: p.Why, Bound: m.Digest, Rule: string(grant.Spawn) + ":" + m.Name, Shown: append([]string{"manifest: " + m.Name + " " + m.Digest}, parts(run.Spec, p)...)}
	q.Cost = fmt.Sprintf("one of the %d places for children of %s, and of its disk %d MiB", made.places, c.Run.Spec.Name, run.Spec.Limits.DiskBytes>>20)
	if budgets := run.Spec.Kernel.Budgets; len(budgets) > 0 {
		q.Cost += "; at most " + strings.Join(budgets, ", ") + " of its budgets"
	}
	var also []string
	if policy := run.Spec.Restart.Policy; policy.Restarts() {
		also = append(also, "it starts again: "+string(policy))
	}
	for _, text := range run.Spec.Kernel.Grants {
		if strings.HasPrefix(text, string(grant.Spawn)+":") {
			also = append(also, "it may start children itself: "+text)
		}
	}
	q.Also = strings.Join(also, "; ")
	return q, nil
}

// parts are what a child would have, a line each. Of the manifest's variables only the names are shown: their values
// may be secrets.
func parts(spec agent.Spec, p api.SpawnParams) (lines []string) {
	line := func(name, format string, values ...any) {
		lines = append(lines, name+": "+fmt.Sprintf(format, values...))
	}
	if p.Name != "" {
		line("name", "%s", p.Name)
	}
	for i, arg := range spec.Command {
		line(map[bool]string{true: "command", false: "argument"}[i == 0], "%s", arg)
	}
	for _, entry := range slices.Sorted(slices.Values(spec.Env)) {
		if name, _, _ := strings.Cut(entry, "="); slices.Contains(p.Env, entry) {
			line("variable", "%s", entry)
		} else if !strings.HasPrefix(entry, reserved) {
			line("variable", "%s, with the value of the manifest", name)
		}
	}
	line("network", "%s", spec.Network)
	for _, r := range spec.Egress.Rules {
		line("network", "%s %s", map[bool]string{true: "deny", false: "allow"}[r.Deny], r.Target)
	}
	if spec.Files.Workspace != "" {
		line("files", "a copy of %s as its workspace", spec.Files.Workspace)
	}
	for _, b := range spec.Files.Binds {
		line("files", "%s as %s, %s", b.Source, b.Target, map[bool]string{true: "read only", false: "to write"}[b.ReadOnly])
	}
	line("grants", "%s", listed(spec.Kernel.Grants))
	if len(spec.Kernel.Secrets) > 0 {
		line("secrets", "%s", listed(spec.Kernel.Secrets))
	}
	line("budgets", "%s", listed(spec.Kernel.Budgets))
	if len(spec.Kernel.Asks) > 0 {
		line("asks people about", "%s", listed(spec.Kernel.Asks))
	}
	l := spec.Limits
	line("limits", "%d MiB of memory, %s processors, %d processes, %d MiB of disk, %s", l.MemoryBytes>>20, amount(l.CPUs), l.Pids, l.DiskBytes>>20, within(l.WallClock))
	return lines
}

func listed(all []string) string {
	if len(all) == 0 {
		return "none"
	}
	return strings.Join(all, ", ")
}

func amount(cpus float64) string {
	if cpus == 0 {
		return "all"
	}
	return fmt.Sprint(cpus)
}

func within(most time.Duration) string {
	if most == 0 {
		return "any time"
	}
	return "at most " + most.String()
}

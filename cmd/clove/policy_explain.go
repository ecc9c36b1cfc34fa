package main

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// explain writes in sentences what an agent may do.
func (p policyVerbs) explain(c *cli.Context) error {
	policy, err := p.load(c.Args().Get(1))
	if err != nil {
		return err
	}
	var names []string
	for _, link := range policy.Chain {
		names = append(names, link.Name)
	}
	fmt.Fprintf(p.out, "%s\n", printable(strings.Join(names, " extends ")))
	if text := policy.Document.Description; text != "" {
		fmt.Fprintf(p.out, "%s\n", printable(text))
	}
	for _, row := range sentences(policy) {
		fmt.Fprintf(p.out, "%-13s %s\n", row[0], printable(row[1]))
	}
	for _, link := range policy.Chain {
		for _, w := range link.Widened {
			fmt.Fprintf(p.out, "%-13s %s\n", "wider", printable(fmt.Sprintf("%s (%s): %s", w.Difference, link.Name, w.Reason)))
		}
	}
	return nil
}

func sentences(policy *resolve.Policy) (rows [][2]string) {
	s := policy.Spec
	add := func(title, text string) { rows = append(rows, [2]string{title, text}) }
	add("files", explainFiles(s.Files))
	if s.Files.Execute != nil {
		add("", "executes only "+strings.Join(s.Files.Execute, ", "))
	}
	if s.Files.Read != nil {
		add("", "reads only "+strings.Join(append(slices.Clone(s.Files.Read), s.Files.OwnPlaces()...), ", "))
	}
	if s.Files.Landlock != "" {
		add("", "only where Landlock holds this a second time")
	}
	for _, bind := range s.Files.Binds {
		how := "reads and changes"
		if bind.ReadOnly {
			how = "reads"
		}
		if bind.CopyOnWrite {
			add("", "reads a folder of the caller's home at "+bind.Target+", and changes a copy of it")
			continue
		}
		add("", how+" the host's "+bind.Source+" at "+bind.Target)
	}
	for _, t := range s.Files.Tmpfs {
		add("", "writes in memory at "+t.Target)
	}
	add("network", modeMeanings[s.Network])
	for _, rule := range s.Egress.Rules {
		verb := "reaches "
		if rule.Deny {
			verb = "never reaches "
		}
		add("", verb+rule.Target)
	}
	for _, server := range s.Egress.DNS {
		add("", "asks the name server "+server.String())
	}
	for _, port := range s.Egress.HostPorts {
		add("", "reaches the host's 127.0.0.1:"+strconv.Itoa(int(port)))
	}
	add("system calls", filterMeanings[s.Seccomp.Profile])
	if filterMeanings[s.Seccomp.Profile] == "" {
		rows[len(rows)-1][1] = "what " + s.Seccomp.Profile + " lets through"
	}
	add("user", explainUser(s))
	add("limits", explainLimits(s.Limits))
	if set, pass := policy.Document.Values[settings.EnvironmentSet], policy.Document.Values[settings.EnvironmentPass]; len(set)+len(pass) > 0 {
		add("environment", strings.TrimSuffix("sets "+namesOf(set)+"; passes on the caller's "+strings.Join(pass, ", "), "; passes on the caller's "))
	}
	for _, text := range s.Kernel.Grants {
		add("may use", text)
	}
	for _, text := range s.Kernel.Budgets {
		add("budget", text)
	}
	if what, after, err := s.Kernel.Denial(); err == nil && what != "deny" {
		add("a refusal", map[string]string{"pause": "pauses the agent", "end": "ends the agent"}[what]+nth(after))
	}
	return rows
}

func nth(after int) string {
	if after == 1 {
		return ""
	}
	return fmt.Sprintf(", from number %d on", after)
}

func explainFiles(f agent.Files) string {
	text := "the host's base system, which it may change in a layer of its own"
	if f.Rootfs != "" {
		text = f.Rootfs + " as its root, which it may change in a layer of its own"
	}
	if f.ReadOnly {
		writes := strings.Join(agent.WritablePlaces, ", ")
		if f.Writable != nil {
			writes = strings.Join(f.Writable, ", ") + " only"
		}
		text = strings.ReplaceAll(text, "which it may change in a layer of its own", "read-only; it writes in "+writes)
	}
	return text
}

// filterMeanings explains the built-in profiles of system calls.
var filterMeanings = map[string]string{
	"unconfined": "all that the kernel allows a program without privileges",
	"standard":   "what ordinary programs need; no new namespaces, mounts, tracing, BPF or io_uring",
	"strict":     "what computing on files needs; as standard, without networks, shared memory and further ioctls",
	"minimal":    "what an interpreter needs to compute; as strict, without other processes and sockets",
}

func explainUser(s agent.Spec) string {
	if s.User.UID != 0 {
		return s.User.Name + ", without capabilities"
	}
	if len(s.CapDrop) > 0 {
		return "root inside only, without " + strings.Join(s.CapDrop, ", ")
	}
	return "root inside only; outside an id without rights"
}

func explainLimits(l agent.Limits) string {
	parts := []string{units.BytesSize(float64(l.MemoryBytes)) + " of memory", fmt.Sprintf("%d processes and threads", l.Pids)}
	if l.CPUs > 0 {
		parts = append(parts, strconv.FormatFloat(l.CPUs, 'f', -1, 64)+" CPUs")
	}
	parts = append(parts, units.BytesSize(float64(l.DiskBytes))+" of files")
	if l.CPUTime > 0 {
		parts = append(parts, l.CPUTime.String()+" of CPU time")
	}
	if l.WallClock > 0 {
		parts = append(parts, "ends after "+l.WallClock.String())
	} else {
		parts = append(parts, "no time limit")
	}
	if l.OutputBytes > 0 {
		parts = append(parts, units.BytesSize(float64(l.OutputBytes))+" of output")
	}
	return strings.Join(parts, ", ")
}

// namesOf are the names of NAME=TEXT.
func namesOf(entries []string) string {
	names := make([]string, len(entries))
	for i, entry := range entries {
		names[i], _, _ = strings.Cut(entry, "=")
	}
	return strings.Join(names, ", ")
}

func (p policyVerbs) show(c *cli.Context) error {
	policy, err := p.load(c.Args().Get(1))
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		values := map[string]string{}
		for _, v := range policy.Document.Written() {
			values[v.Key] = v.Text
		}
		return p.printJSON(struct {
			Policy agent.Policy      `json:"policy"`
			Chain  []resolve.Link    `json:"chain"`
			Values map[string]string `json:"values"`
		}{policy.Spec.Policy, policy.Chain, values})
	}
	if c.Bool(flagResolved) {
		return p.printList(c, policy.Document.Written())
	}
	for i, link := range policy.Chain {
		if i > 0 {
			fmt.Fprintln(p.out)
		}
		fmt.Fprintf(p.out, "# %s: %s\n", printable(link.Name), printable(link.Source))
		if err := printDocument(p.out, link); err != nil {
			return err
		}
		for _, w := range link.Widened {
			fmt.Fprintf(p.out, "# wider: %s, because: %s\n", printable(w.Difference.String()), printable(w.Reason))
		}
	}
	return nil
}

// printDocument prints a document as it is written.
func printDocument(to io.Writer, link resolve.Link) error {
	text, ok := policies.Level(link.Name)
	if !ok {
		var err error
		if text, err = host.ReadBounded(link.Source, policies.MostBytes); err != nil {
			return err
		}
	}
	for line := range strings.Lines(string(text)) {
		fmt.Fprintln(to, printable(strings.TrimRight(line, "\n")))
	}
	return nil
}

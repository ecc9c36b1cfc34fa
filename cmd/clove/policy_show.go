package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/build"
	"clove.run/clove/policies/host"
)

func (p *program) policyShow(c *cli.Context) error {
	policy, err := p.loadPolicy(c.Args().Get(1))
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(struct {
			Policy agent.Policy      `json:"policy"`
			Chain  []build.Link      `json:"chain"`
			Spec   map[string]string `json:"values"`
		}{policy.Spec.Policy, policy.Chain, valuesOf(policy)})
	}
	if c.Bool(flagResolved) {
		rows := [][]string{{"KEY", "VALUE"}}
		for _, row := range resolved(policy) {
			rows = append(rows, row[:])
		}
		return printTable(p.out, rows)
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
func printDocument(to io.Writer, link build.Link) error {
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

// valuesOf are the resolved values by their keys.
func valuesOf(policy *build.Policy) map[string]string {
	values := map[string]string{}
	for _, row := range resolved(policy) {
		values[row[0]] = row[1]
	}
	return values
}

// resolved are the keys of a document with the values that a run gets; those without a value
// are left out.
func resolved(policy *build.Policy) (rows [][2]string) {
	s := policy.Spec
	add := func(key, value string) {
		if value != "" {
			rows = append(rows, [2]string{key, value})
		}
	}
	size := func(n int64) string {
		if n == 0 {
			return ""
		}
		return units.BytesSize(float64(n))
	}
	number := func(n float64) string {
		if n == 0 {
			return ""
		}
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	list := func(items []string) string { return strings.Join(items, ", ") }
	add("limits.memory", size(s.Limits.MemoryBytes))
	switch swap := s.Limits.MemorySwapBytes; {
	case swap < 0:
		add("limits.memory_swap", "-1")
	default:
		add("limits.memory_swap", size(swap))
	}
	add("limits.cpus", number(s.Limits.CPUs))
	add("limits.cpuset", s.Limits.CPUSet)
	add("limits.pids", number(float64(s.Limits.Pids)))
	if s.Limits.CPUTime > 0 {
		add("limits.cpu_time", s.Limits.CPUTime.String())
	}
	if s.Limits.WallClock > 0 {
		add("limits.timeout", s.Limits.WallClock.String())
	}
	add("limits.stop_timeout", s.Limits.StopGrace.String())
	add("limits.output", size(s.Limits.OutputBytes))
	add("limits.disk", size(s.Limits.DiskBytes))
	add("limits.shm", size(s.Limits.ShmBytes))
	for _, limit := range s.Limits.Rlimits {
		add("ulimits."+limit.Name, ulimitText(limit))
	}
	root := "writable"
	if s.Files.ReadOnly {
		root = policies.RootReadOnly
	}
	add("files.root", root)
	add("files.writable", list(s.Files.Writable))
	add("files.volumes", list(policy.Document.Files.Volumes))
	add("files.tmpfs", list(policy.Document.Files.Tmpfs))
	add("files.rootfs", s.Files.Rootfs)
	add("user", s.User.Name)
	add("capabilities.drop", list(s.CapDrop))
	add("seccomp", s.Seccomp.Profile)
	add("environment.set", keysOf(policy.Document.Environment.Set))
	add("environment.pass", list(policy.Document.Environment.Pass))
	add("network.mode", s.Network)
	add("network.allow", list(targets(s.Egress.Rules, false)))
	add("network.deny", list(targets(s.Egress.Rules, true)))
	var ports []string
	for _, port := range s.Egress.HostPorts {
		ports = append(ports, strconv.Itoa(int(port)))
	}
	add("network.host_ports", list(ports))
	add("network.dns", list(policy.Document.Network.DNS))
	add("network.connections", number(float64(s.Egress.Limits.Connections)))
	add("network.rate", number(float64(s.Egress.Limits.PerSecond)))
	add("network.bytes", size(s.Egress.Limits.Bytes))
	add("grants", list(s.Kernel.Grants))
	add("budgets", list(s.Kernel.Budgets))
	add("at_end", s.Kernel.AtEnd)
	add("on_denial", s.Kernel.OnDenial)
	if s.Kernel.Socket {
		add("agent_socket", "true")
	}
	add("allow_unenforced", list(s.AllowUnenforced))
	return rows
}

func ulimitText(limit agent.Rlimit) string {
	value := func(n uint64) string {
		if n == agent.RlimitInfinity {
			return "-1"
		}
		return strconv.FormatUint(n, 10)
	}
	if limit.Soft == limit.Hard {
		return value(limit.Soft)
	}
	return value(limit.Soft) + ":" + value(limit.Hard)
}

func targets(rules []agent.EgressRule, denied bool) (texts []string) {
	for _, rule := range rules {
		if rule.Deny == denied {
			texts = append(texts, rule.Target)
		}
	}
	return texts
}

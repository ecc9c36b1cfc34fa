package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/docker/go-units"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/build"
	"clove.run/clove/policies/compare"
	"clove.run/clove/policies/host"
)

const policyName = "policy"

// policyWords are what clove policy does.
var policyWords = map[string]word{
	"list":    {flags: []string{flagJSON}, do: (*program).policyList},
	"show":    {flags: []string{flagJSON, flagResolved}, least: 1, do: (*program).policyShow},
	"explain": {least: 1, do: (*program).policyExplain},
	"check":   {least: 1, most: anyNumber, do: (*program).policyCheck},
	"test":    {flags: []string{flagJSON, flagLive}, least: 1, do: (*program).policyTest},
	"diff":    {flags: []string{flagJSON}, least: 2, do: (*program).policyDiff},
	"schema":  {do: (*program).policySchema},
	"init":    {least: 1, do: (*program).policyInit},
}

const flagResolved = "resolved"

func (p *program) policyCommand() *cli.Command {
	return &cli.Command{
		Name: policyName, Usage: "show, check and compare what agents may do",
		UsageText: "clove policy list [--json]\nclove policy show [--resolved] [--json] POLICY\nclove policy explain POLICY\nclove policy check POLICY...\n" +
			"clove policy test [--live] [--json] FILE\nclove policy diff [--json] A B\nclove policy schema\nclove policy init FILE",
		Description: "POLICY is a level (" + strings.Join(policies.Levels, ", ") + "), the name of a document in\n" +
			"~/.config/clove/policies or /etc/clove/policies, or the path of one. show prints the document and what it extends, with\n" +
			"--resolved the values that a run gets; explain says in words what an agent may do. check finds mistakes, and what is\n" +
			"wider than what it extends without a reason. diff says what B allows that A does not: exit status 1 if there is\n" +
			"something. schema prints the JSON Schema of documents, for editors. init writes a document to begin with.\n\n" +
			"test compares a policy with FILE: exit status 1 if something is not as it expects. FILE is YAML such as\n\n" +
			"{version: 1, policy: standard, expect: [{read: /root, is: deny}, {syscall: mount, is: deny, note: none of its own}]}\n\n" +
			"The actions are connect, read, write, exec, syscall (with args, a list of numbers), tool and model. test knows neither\n" +
			"whether a file exists nor what its permissions are; with --live it tries each action in a sandbox under the policy.",
		Flags: []cli.Flag{
			boolean("", flagResolved, "", "show: print the values that a run gets"),
			boolean("", flagLive, "", "test: try the actions in a sandbox; this needs root, or cloved"),
			jsonFlag("list, test: write a JSON array; show, diff: an object"),
		},
		Action: p.policy,
	}
}

func (p *program) policy(c *cli.Context) error {
	return p.doWord(c, policyWords, "clove policy list, show POLICY, explain POLICY, check POLICY, test FILE, diff A B, schema or init FILE")
}

func (p *program) policyList(c *cli.Context) error {
	h, err := host.Current()
	if err != nil {
		return err
	}
	all := build.Policies(h)
	if c.Bool(flagJSON) {
		return p.printJSON(all)
	}
	rows := [][]string{{"NAME", "FROM", "DESCRIPTION"}}
	for _, f := range all {
		text := f.Description
		if f.Error != "" {
			text = "cannot be used: " + f.Error
		}
		rows = append(rows, []string{f.Name, f.Source, text})
	}
	return printTable(p.out, rows)
}

// loadPolicy reads a policy for a command that runs nothing.
func loadPolicy(reference string) (*build.Policy, error) {
	h, err := host.Current()
	if err != nil {
		return nil, err
	}
	if path := h.Absolute(reference); path == build.CeilingFile(h.Ceiling) {
		return build.LoadCeiling(path)
	}
	return build.LoadPolicy(reference, h)
}

func (p *program) policyShow(c *cli.Context) error {
	policy, err := loadPolicy(c.Args().Get(1))
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

// policyCheck reports every document that has a mistake.
func (p *program) policyCheck(c *cli.Context) error {
	failed := false
	for _, reference := range c.Args().Slice()[1:] {
		policy, err := loadPolicy(reference)
		if err != nil {
			p.report(err)
			failed = true
			continue
		}
		wider := 0
		for _, link := range policy.Chain {
			wider += len(link.Widened)
		}
		line := printable(reference) + ": sound"
		if wider > 0 {
			line += fmt.Sprintf("; it is wider than what it extends in %d places, each with a reason", wider)
		}
		fmt.Fprintln(p.out, line)
	}
	if failed {
		return exitStatus(exitFailed)
	}
	return nil
}

func (p *program) policyDiff(c *cli.Context) error {
	a, err := loadPolicy(c.Args().Get(1))
	if err != nil {
		return err
	}
	b, err := loadPolicy(c.Args().Get(2))
	if err != nil {
		return err
	}
	more, less := compare.Wider(a.Spec, b.Spec), compare.Wider(b.Spec, a.Spec)
	if c.Bool(flagJSON) {
		if err := p.printJSON(struct {
			More []compare.Difference `json:"more"`
			Less []compare.Difference `json:"less"`
		}{append([]compare.Difference{}, more...), append([]compare.Difference{}, less...)}); err != nil {
			return err
		}
	} else {
		p.printDifferences(fmt.Sprintf("%s allows, and %s does not", b.Document.Name, a.Document.Name), more)
		p.printDifferences(fmt.Sprintf("%s allows, and %s does not", a.Document.Name, b.Document.Name), less)
		if len(more)+len(less) == 0 {
			fmt.Fprintln(p.out, "they allow the same")
		}
	}
	if len(more) > 0 {
		return exitStatus(exitFailed)
	}
	return nil
}

func (p *program) printDifferences(title string, all []compare.Difference) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(p.out, printable(title)+":")
	for _, d := range all {
		fmt.Fprintln(p.out, "  "+printable(d.String()))
	}
}

func (p *program) policySchema(*cli.Context) error {
	_, err := p.out.Write(policies.Schema())
	return err
}

// firstPolicy is what init writes.
const firstPolicy = `# clove policy check %[1]s finds mistakes, clove policy explain %[1]s says what it allows.
version: 1
name: %[2]s
description: what the agent is for
extends: sandboxed # or unrestricted, standard, readonly, minimal, another name, a file
limits:
  memory: 256M
  timeout: 10m
# To allow more than what it extends, say why:
#widen:
#  network: it reads one API
#  seccomp: it makes connections
#seccomp: standard
#network:
#  mode: allowlist
#  allow: [api.example.com]
`

func (p *program) policyInit(c *cli.Context) error {
	path := c.Args().Get(1)
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if agent.ValidateName(name) != nil || filepath.Ext(path) != ".yaml" {
		return invalid("", "clove policy init NAME.yaml", "%q is no file name for a policy", path)
	}
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return &agent.Error{Kind: agent.KindConflict, Message: path + " exists", Hint: "name another file"}
	}
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Message: "cannot write the policy", Hint: "name a file in a directory that exists", Err: err}
	}
	_, err = fmt.Fprintf(file, firstPolicy, path, name)
	return errors.Join(err, file.Close())
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/learn"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

const (
	flagResolved = "resolved"
	flagMerge    = "merge"
	flagReads    = "reads"
	flagOut      = "out"
)

// policyVerbs are those of clove policy that read documents.
type policyVerbs program

func policyCommand() command {
	return command{
		task: "decide", usage: "show, check and compare what agents may do",
		verbs: []verb{
			{line: "clove policy list [--json]", act: of(policyVerbs.all)},
			{line: "clove policy show [--resolved] [--json] POLICY", act: of(policyVerbs.show)},
			{line: "clove policy explain POLICY", act: of(policyVerbs.explain)},
			{line: "clove policy check POLICY...", act: of(policyVerbs.check)},
			{line: "clove policy test [--live] [--json] FILE", act: of(policyVerbs.test)},
			{line: "clove policy diff [--json] A B", act: of(policyVerbs.diff)},
			{line: "clove policy schema", act: prints(policySchema)},
			{line: "clove policy init FILE", act: of(policyVerbs.begin)},
			{line: "clove policy learn --merge [--reads] --out FILE OBSERVATION...", act: of(policyVerbs.learn)},
			{line: "clove policy audit [--json] RUN", act: of(policyVerbs.audit)},
			{line: "clove policy import [--name NAME] [--from SYSTEM] [--skip SETTING]... FILE", act: of(policyVerbs.importSettings)},
		},
		description: "POLICY is a level (" + strings.Join(policies.Levels, ", ") + "), the name of a document in\n" +
			"~/.config/clove/policies or /etc/clove/policies, or the path of one. show prints the document and what it extends, with\n" +
			"--resolved the values that a run gets; explain says in words what an agent may do. check finds mistakes, and what is\n" +
			"wider than what it extends without a reason. diff says what B allows that A does not: exit status 1 if there is\n" +
			"something. schema prints the JSON Schema of documents, for editors. init writes a document to begin with.\n" +
			"import prints the document that the settings of another system become: docker's filter of system calls, those of\n" +
			"sandbox-runtime, Claude Code and Codex. docs/policies-import.md lists what each setting becomes.\n\n" +
			"learn --merge folds what several runs of clove run --learn used (FILE.yaml.observed.json) into one policy. audit says what a\n" +
			"run was allowed and never used, of a run's name or of an observation's file.\n\n" +
			"test compares a policy with FILE: exit status 1 if something is not as it expects. FILE is YAML such as\n\n" +
			"{version: 1, policy: standard, expect: [{read: /root, is: deny}, {syscall: mount, is: deny, note: none of its own}]}\n\n" +
			"The actions are connect, read, write, exec, syscall (with args, a list of numbers), tool and model. test knows neither\n" +
			"whether a file exists nor what its permissions are; with --live it tries each action in a sandbox under the policy.",
		flags: append([]cli.Flag{
			boolean("", flagResolved, "", "show: print the values that a run gets"),
			boolean("", flagLive, "", "test: try the actions in a sandbox; this needs root, or cloved"),
			boolean("", flagMerge, "", "learn: fold all observations into one"),
			boolean("", flagReads, "", "learn: the policy names what may be read, too"),
			&cli.StringFlag{Name: flagOut, Aliases: []string{"o"}, Usage: "learn: the policy's file, NAME.yaml"},
			jsonFlag("list, test: write a JSON array; show, diff: an object"),
		}, importFlags()...),
	}
}

// reportWider says at the start of a run where its policy allows more than what it extends.
func reportWider(s *screen, policy agent.Policy) {
	if places := widerPlaces(policy); len(places) > 0 {
		s.say("clove", cyan, "policy "+policy.Name+" is wider than what it extends in "+strings.Join(places, ", ")+" (clove policy explain says why)")
	}
}

// widerPlaces leaves out those that learning wrote: each of them was used.
func widerPlaces(policy agent.Policy) (places []string) {
	for _, text := range policy.Widened {
		place, rest, _ := strings.Cut(text, " ")
		if _, reason, _ := strings.Cut(rest, "): "); learn.IsReason(reason) {
			continue
		}
		places = append(places, place)
	}
	return places
}

func (p policyVerbs) all(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	return p.printList(c, resolve.Policies(h))
}

// load reads a policy for a command that runs nothing.
func (p policyVerbs) load(reference string) (*resolve.Policy, error) {
	h, err := p.host()
	if err != nil {
		return nil, err
	}
	if path := h.Absolute(reference); path == resolve.CeilingFile(h.Ceiling) {
		return resolve.LoadCeiling(path)
	}
	return resolve.LoadPolicy(reference, h)
}

// check reports every document that has a mistake.
func (p policyVerbs) check(c *cli.Context) error {
	failed := false
	for _, reference := range c.Args().Slice()[1:] {
		policy, err := p.load(reference)
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

func (p policyVerbs) diff(c *cli.Context) error {
	a, err := p.load(c.Args().Get(1))
	if err != nil {
		return err
	}
	b, err := p.load(c.Args().Get(2))
	if err != nil {
		return err
	}
	more, less := settings.Wider(a.Spec, b.Spec), settings.Wider(b.Spec, a.Spec)
	if c.Bool(flagJSON) {
		if err := p.printJSON(struct {
			More []settings.Difference `json:"more"`
			Less []settings.Difference `json:"less"`
		}{append([]settings.Difference{}, more...), append([]settings.Difference{}, less...)}); err != nil {
			return err
		}
	} else {
		printDifferences(p.screen, fmt.Sprintf("%s allows, and %s does not", b.Document.Name, a.Document.Name), more)
		printDifferences(p.screen, fmt.Sprintf("%s allows, and %s does not", a.Document.Name, b.Document.Name), less)
		if len(more)+len(less) == 0 {
			fmt.Fprintln(p.out, "they allow the same")
		}
	}
	if len(more) > 0 {
		return exitStatus(exitFailed)
	}
	return nil
}

func printDifferences(s *screen, title string, all []settings.Difference) {
	if len(all) == 0 {
		return
	}
	fmt.Fprintln(s.out, printable(title)+":")
	for _, d := range all {
		fmt.Fprintln(s.out, "  "+printable(d.String()))
	}
}

func policySchema(s *screen, _ *cli.Context) error {
	_, err := s.out.Write(policies.Schema())
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

func (p policyVerbs) begin(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	path := c.Args().Get(1)
	name := strings.TrimSuffix(filepath.Base(path), filepath.Ext(path))
	if agent.ValidateName(name) != nil || filepath.Ext(path) != ".yaml" {
		return invalid("", "clove policy init NAME.yaml", "%q is no file name for a policy", path)
	}
	file, err := os.OpenFile(h.Absolute(path), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, os.ErrExist) {
		return &agent.Error{Kind: agent.KindConflict, Message: path + " exists", Hint: "name another file"}
	}
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Message: "cannot write the policy", Hint: "name a file in a directory that exists", Err: err}
	}
	_, err = fmt.Fprintf(file, firstPolicy, path, name)
	return errors.Join(err, file.Close())
}

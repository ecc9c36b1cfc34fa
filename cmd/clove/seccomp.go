package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/opencontainers/runtime-spec/specs-go"
	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
	"clove.run/clove/seccomp"
)

const (
	seccompName = "seccomp"
	flagProfile = "profile"
	// dockerProfile is docker's own default, to compare with; no run uses it.
	dockerProfile = "docker"
)

func seccompCommand() command {
	return command{
		task: "decide", usage: "show and compare system call filters",
		verbs: []verb{
			{line: "clove seccomp list [--json]", act: prints(seccompList)},
			{line: "clove seccomp show [--json] PROFILE", act: prints(seccompShow)},
			{line: "clove seccomp explain [--profile PROFILE] [--json] SYSCALL", act: prints(seccompExplain)},
			{line: "clove seccomp compare [--json] PROFILE [PROFILE]", act: prints(seccompCompare)},
		},
		description: "A PROFILE is a name of list's, docker (docker's default for a container without capabilities), or a file in docker's\n" +
			"JSON format. show lists its groups of calls with the reason of each; for a file also what standard refuses and it\n" +
			"allows. show --json writes a file for clove run --seccomp. explain says what a profile, or each, does with one call, and\n" +
			"why. compare lists the calls that two profiles treat differently; without a second one it compares with docker.",
		flags: []cli.Flag{
			value("", flagProfile, "", "explain: only this profile", ""),
			jsonFlag("write JSON; show: the profile itself, in docker's format"),
		},
	}
}

// readProfile finds a profile as clove run --seccomp does: names come before files. nil is the
// unconfined profile.
func readProfile(name string) (*specs.LinuxSeccomp, error) {
	var profile *specs.LinuxSeccomp
	var err error
	switch {
	case slices.Contains(seccomp.Names(), name):
		profile, err = seccomp.Profile(name)
	case name == dockerProfile:
		profile, err = seccomp.Docker()
	default:
		var document []byte
		if document, err = host.ReadBounded(name, seccomp.MaxDocumentBytes); err == nil {
			profile, err = seccomp.Parse(document)
		}
	}
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: seccompName, Message: fmt.Sprintf("cannot use %q", name), Err: err,
			Hint: "it takes " + strings.Join(seccomp.Names(), ", ") + ", " + dockerProfile + " or a file in docker's JSON format"}
	}
	return profile, nil
}

// profileMeanings are for list.
var profileMeanings = map[string]string{
	seccomp.Unconfined: "all calls but those that reach AF_ALG",
	seccomp.Standard:   "what ordinary programs need; the default",
	seccomp.Strict:     "programs that compute on files: no network, no shared IPC",
	seccomp.Minimal:    "one program that computes: no other process, no socket",
}

// listedProfile is a row of clove seccomp list.
type listedProfile struct {
	Name        string `json:"name" col:"NAME"`
	Allowed     int    `json:"allowed" col:"ALLOWED"`
	Conditional int    `json:"with_conditions" col:"WITH CONDITIONS"`
	Refused     int    `json:"refused" col:"REFUSED"`
	Meaning     string `json:"meaning" col:"FOR"`
}

func seccompList(s *screen, c *cli.Context) error {
	var all []listedProfile
	for _, name := range seccomp.Names() {
		groups, err := seccomp.Groups(name)
		if err != nil {
			return err
		}
		count := map[seccomp.Verdict]int{}
		for _, g := range groups {
			count[g.Verdict] += len(g.Calls)
		}
		all = append(all, listedProfile{name, count[seccomp.Allowed], count[seccomp.Conditional], count[seccomp.Refused], profileMeanings[name]})
	}
	return s.printList(c, all)
}

func seccompShow(s *screen, c *cli.Context) error {
	name := c.Args().Get(1)
	profile, err := readProfile(name)
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		if profile == nil {
			profile = &specs.LinuxSeccomp{DefaultAction: specs.ActAllow} // no filter, as a document says it
		}
		return s.printJSON(profile)
	}
	groups, warnings := seccomp.GroupsOf(profile), seccomp.Warnings(profile)
	if slices.Contains(seccomp.Names(), name) {
		if groups, err = seccomp.Groups(name); err != nil {
			return err
		}
	}
	for _, g := range groups {
		title := conditionally(g.Verdict, g.Allowed) + ": " + g.Reason
		if g.Name != "" {
			title = g.Name + ": " + title
		}
		if err := printGroup(s, title, g.Calls); err != nil {
			return err
		}
	}
	for _, w := range warnings {
		if err := printGroup(s, "warning: "+w.Group+": standard refuses it: "+w.Reason, w.Calls); err != nil {
			return err
		}
	}
	return nil
}

// printGroup writes a line and, indented below it, items.
func printGroup(s *screen, title string, items []string) error {
	lines := wrapped(strings.Join(items, " "), usualWidth-3)
	_, err := fmt.Fprintf(s.out, "%s\n   %s\n", printable(title), hanging(lines, 3))
	return err
}

// explained is an explanation with the profile that it is of.
type explained struct {
	Profile string `json:"profile"`
	seccomp.Explanation
}

func seccompExplain(s *screen, c *cli.Context) error {
	call, names := c.Args().Get(1), seccomp.Names()
	if only := c.String(flagProfile); only != "" {
		names = []string{only}
	}
	var all []explained
	for _, name := range names {
		e, err := explainCall(name, call)
		if err != nil {
			return err
		}
		all = append(all, explained{name, e})
	}
	if c.Bool(flagJSON) {
		return s.printJSON(all)
	}
	for _, e := range all {
		if err := printGroup(s, e.title(), strings.Fields(e.why())); err != nil {
			return err
		}
	}
	return nil
}

// title is the verdict with what the call gets otherwise.
func (e explained) title() string {
	switch e.Verdict {
	case seccomp.Refused:
		return e.Profile + ": refused with " + e.Answer
	case seccomp.Conditional:
		return e.Profile + ": " + conditionally(e.Verdict, e.Allowed) + ", otherwise " + e.Answer
	}
	return e.Profile + ": " + string(e.Verdict)
}

// why is the reason, with its group if there is one.
func (e explained) why() string {
	if e.Group == "" {
		return e.Reason
	}
	return e.Group + ": " + e.Reason
}

// conditionally is a verdict with its condition, as far as a table has one.
func conditionally(verdict seccomp.Verdict, condition string) string {
	if condition == "" {
		return string(verdict)
	}
	return "allowed for " + condition
}

// explainCall asks the tables of a built-in profile, or the rules of another.
func explainCall(name, call string) (e seccomp.Explanation, err error) {
	if slices.Contains(seccomp.Names(), name) {
		e, err = seccomp.Explain(name, call)
	} else {
		var profile *specs.LinuxSeccomp
		if profile, err = readProfile(name); err != nil {
			return e, err
		}
		e, err = seccomp.ExplainProfile(profile, call)
	}
	if err != nil {
		err = &agent.Error{Kind: agent.KindInvalid, Step: seccompName, Message: "cannot explain it", Err: err,
			Hint: "clove seccomp show unconfined lists this machine's"}
	}
	return e, err
}

func seccompCompare(s *screen, c *cli.Context) error {
	nameA, nameB := c.Args().Get(1), cmp.Or(c.Args().Get(2), dockerProfile)
	a, err := readProfile(nameA)
	if err != nil {
		return err
	}
	b, err := readProfile(nameB)
	if err != nil {
		return err
	}
	compared := seccomp.Compare(a, b)
	if c.Bool(flagJSON) {
		return s.printJSON(compared)
	}
	rows := [][]string{{"CALL", strings.ToUpper(nameA), strings.ToUpper(nameB), "DIFFERENCE"}}
	for _, part := range []struct {
		difference string
		calls      []seccomp.Difference
	}{{"only " + nameA + " allows it", compared.OnlyA}, {"only " + nameB + " allows it", compared.OnlyB}, {"allowed with other arguments", compared.Other}} {
		for _, d := range part.calls {
			rows = append(rows, []string{d.Call, string(d.A), string(d.B), part.difference})
		}
	}
	if len(rows) == 1 {
		_, err := fmt.Fprintf(s.out, "%s and %s allow the same\n", printable(nameA), printable(nameB))
		return err
	}
	return printTable(s.out, rows)
}

// reportFilter warns of a file for --seccomp that allows what standard refuses.
func reportFilter(s *screen, spec agent.Spec) {
	if spec.Seccomp.Document == nil {
		return
	}
	profile, err := seccomp.Parse(spec.Seccomp.Document)
	if err != nil {
		return // the start reports it
	}
	var groups []string
	for _, w := range seccomp.Warnings(profile) {
		if !slices.Contains(groups, w.Group) {
			groups = append(groups, w.Group)
		}
	}
	if len(groups) > 0 {
		s.say("clove", cyan, spec.Seccomp.Profile+" allows calls that standard refuses: "+strings.Join(groups, ", "))
		s.say("hint", cyan, "clove seccomp show "+spec.Seccomp.Profile+" lists them, each group with its danger")
	}
}

package main

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/loop/order"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// manifestVerbs are those of clove manifest. They run nothing.
type manifestVerbs program

func manifestCommand() command {
	return command{
		task: "run", usage: "check, show and compare agents that are files",
		verbs: []verb{
			{line: "clove manifest check FILE...", act: of(manifestVerbs.check)},
			{line: "clove manifest show [--json] FILE", act: of(manifestVerbs.show)},
			{line: "clove manifest digest FILE...", act: of(manifestVerbs.digest)},
			{line: "clove manifest schema", act: prints(manifestSchema)},
			{line: "clove manifest add [--json] FILE...", act: of(manifestVerbs.add)},
			{line: "clove manifest ls [--json]", act: list(methods.ManifestList).columns("NAME", "DIGEST", "ADDED", "GRANTS")},
			{line: "clove manifest rm MANIFEST", act: ask(methods.ManifestRemove).shows(says(func(l *line, _ api.ManifestRemoveResult) string { return l.args[0] }))},
		},
		description: "FILE is a manifest, as agent.yaml: a name, a script or a command, and the settings of clove run by their keys.\n" +
			"clove run FILE runs it. check builds the run without starting it, and names the first mistake of each file. show\n" +
			"prints every setting that the run gets, of the file and of what it extends. digest prints what identifies the\n" +
			"manifest in records: it is the same on another machine. schema prints the JSON Schema of manifests, for editors.\n" +
			"add keeps what a manifest means now, for agents with --grant spawn:NAME: they may start it, and nothing of the file is\n" +
			"read again. A grant holds what the name meant when it was given. ls lists what you have added, and rm forgets a name.",
		flags: []cli.Flag{jsonFlag("show: write an object; add, ls: an array")},
	}
}

// withManifest lays a request whose script is a manifest over that. file is nil for any other. Of
// a manifest that is a model and instructions, the request's only argument is the prompt. ordered
// is what clove ask or clove chat say beside it, which take no other manifest; nil: neither asks.
func withManifest(asked resolve.Request, ordered *order.Order, h host.Host) (file *resolve.Manifest, request resolve.Request, err error) {
	if !resolve.NamesManifest(asked.Script, h) {
		return nil, asked, nil
	}
	if file, err = resolve.LoadManifest(asked.Script, h); err != nil {
		return nil, asked, err
	}
	asked.Script = ""
	request, err = laid(file, asked, ordered, h)
	return file, request, err
}

// laid lays a request over a manifest that was read, as withManifest does.
func laid(file *resolve.Manifest, asked resolve.Request, ordered *order.Order, h host.Host) (request resolve.Request, err error) {
	name := file.Source
	var o order.Order
	switch {
	case ordered != nil && file.Written.Model == "":
		return asked, invalid("", "clove run "+name+"; an agent that can be asked has model: NAME", "%s names no model", name)
	case ordered != nil:
		o = *ordered
	case file.Written.Model == "":
		return file.Request(asked, h)
	}
	switch {
	case len(asked.Args) == 1 && !o.Chat:
		o.Prompt, asked.Args = asked.Args[0], nil
	case !o.Chat:
		return asked, invalid("", `clove ask `+name+` "what to do", or clove chat `+name, "it is a model with instructions, and needs one prompt")
	}
	o.Model = cmp.Or(o.Model, file.Written.Model)
	o.Instructions = cmp.Or(o.Instructions, file.Instructions)
	o.Iterations, o.Context = cmp.Or(o.Iterations, file.Written.MaxIterations), cmp.Or(o.Context, file.Written.Context)
	if request, err = file.Request(asked, h); err != nil {
		return request, err
	}
	return request, runLoop(&request, o, h)
}

// check builds the spec of each file.
func (p manifestVerbs) check(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	failed := false
	for _, path := range c.Args().Slice()[1:] {
		only, err := checkManifest(path, h)
		if err != nil {
			p.report(err)
			failed = true
			continue
		}
		fmt.Fprintln(p.out, printable(path)+": sound"+only)
	}
	if failed {
		return exitStatus(exitFailed)
	}
	return nil
}

// checkManifest also says of a manifest for which it is sound only, if it is not for each start.
func checkManifest(path string, h host.Host) (only string, err error) {
	if !resolve.NamesManifest(path, h) {
		return "", invalid("", "call it agent.yaml", "%q has not the ending of a manifest", path)
	}
	if resolve.IsTeam(path, h) {
		team, err := resolve.LoadTeam(path, h)
		if err == nil {
			_, err = teamSpecs(team, h)
		}
		return "", err
	}
	// A model's needs a prompt, and takes any.
	var args []string
	if m, err := resolve.LoadManifest(path, h); err == nil && m.Written.Model != "" {
		args = []string{"check"}
	}
	file, request, err := withManifest(resolve.Request{Script: path, Args: args}, nil, h)
	if err != nil {
		return "", err
	}
	if slices.ContainsFunc(settings.Detached().Rows, func(row settings.Setting) bool { return request.Values.Has(row.Flag) }) {
		request.Values.Set(settings.Detach, "true")
		only = ", for clove run -d, as a child and in a team"
	}
	_, err = resolve.Spec(request, h, agent.NewID())
	return only, file.Mistake(err, nil)
}

// manifestRow is one setting as show prints it.
type manifestRow struct {
	Key  string `col:"KEY"`
	Text string `col:"VALUE"`
}

func (p manifestVerbs) show(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	m, err := resolve.LoadManifest(c.Args().Get(1), h)
	if err != nil {
		return err
	}
	digest, err := m.Digest(h)
	if err != nil {
		return err
	}
	resolved, err := m.Resolved(h)
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(struct {
			Manifest policies.Manifest   `json:"manifest"`
			SHA256   string              `json:"sha256"`
			Values   map[string][]string `json:"values"`
		}{m.Written, digest, resolved})
	}
	rows := []manifestRow{{"name", m.Written.Name}, {"sha256", digest}}
	for _, row := range []manifestRow{{"script", m.Written.Script}, {"command", strings.Join(m.Written.Command, " ")}, {"program", m.Written.Program}, {"args", strings.Join(m.Written.Args, " ")},
		{"install", m.Written.Install}, {"login", strings.Join(m.Written.Login, ", ")}, {"model", m.Written.Model}, {"instructions", m.Instructions}, {"home", m.Written.Home}} {
		if row.Text != "" {
			rows = append(rows, row)
		}
	}
	for _, key := range slices.Sorted(maps.Keys(resolved)) {
		rows = append(rows, manifestRow{key, strings.Join(resolved[key], ", ")})
	}
	return p.printList(c, rows)
}

func (p manifestVerbs) digest(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	for _, path := range c.Args().Slice()[1:] {
		m, err := resolve.LoadManifest(path, h)
		if err != nil {
			return err
		}
		digest, err := m.Digest(h)
		if err != nil {
			return err
		}
		fmt.Fprintln(p.out, digest+"  "+printable(path))
	}
	return nil
}

// add keeps the spec of each file.
func (p manifestVerbs) add(c *cli.Context) error {
	h, err := p.host()
	if err != nil {
		return err
	}
	var files []*resolve.Manifest
	for _, path := range c.Args().Slice()[1:] {
		file, err := resolve.LoadManifest(path, h)
		if err != nil {
			return err
		}
		files = append(files, file)
	}
	added, err := program(p).addManifests(c, files, h)
	if err != nil {
		return err
	}
	if c.Bool(flagJSON) {
		return p.printJSON(added)
	}
	for _, m := range added {
		fmt.Fprintln(p.out, m.Name+"@"+m.Digest)
	}
	return nil
}

// addManifests keeps manifests, each behind those that it starts. All are resolved before one is kept.
func (p program) addManifests(c *cli.Context, files []*resolve.Manifest, h host.Host) ([]api.AddedManifest, error) {
	all, err := manifestsToAdd(files, h)
	if err != nil || len(all) == 0 {
		return nil, err
	}
	d, err := p.cloved(c)
	if err != nil {
		return nil, err
	}
	defer d.Close()
	added := []api.AddedManifest{}
	for _, one := range all {
		result, err := client.Do(c.Context, d, methods.ManifestAdd, one)
		if err != nil {
			return nil, err
		}
		added = append(added, result.Manifest)
	}
	return added, nil
}

func manifestsToAdd(files []*resolve.Manifest, h host.Host) (all []api.ManifestAddParams, err error) {
	for _, file := range files {
		below, err := manifestsToAdd(file.Children, h)
		if err != nil {
			return nil, err
		}
		one, err := manifestToAdd(file, h)
		if err != nil {
			return nil, err
		}
		all = append(append(all, below...), one)
	}
	return all, nil
}

// manifestToAdd resolves a manifest as clove run does. Of a model's, agents that start it give the prompt.
func manifestToAdd(file *resolve.Manifest, h host.Host) (p api.ManifestAddParams, err error) {
	var ordered *order.Order
	if file.Written.Model != "" {
		ordered = &order.Order{Chat: true}
	}
	var asked resolve.Request
	asked.Values.Set(settings.Detach, "true")
	request, err := laid(file, asked, ordered, h)
	if err != nil {
		return p, err
	}
	p.Name = file.Written.Name
	if p.Spec, err = resolve.Spec(request, h, agent.NewID()); err != nil {
		return p, file.Mistake(err, nil)
	}
	p.Spec.ID = ""
	p.Files, err = file.Executes()
	return p, err
}

func manifestSchema(s *screen, _ *cli.Context) error {
	_, err := s.out.Write(policies.ManifestSchema())
	return err
}

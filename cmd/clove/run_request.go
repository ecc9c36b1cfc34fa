package main

import (
	"path/filepath"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/loop/order"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

// runSpec builds the spec of a command line of run. With an error it returns as much of
// the spec as is known, for the record of the refusal.
func (p launcher) runSpec(c *cli.Context, h host.Host, id agent.ID) (agent.Spec, error) {
	request := requestOf(c)
	err := refuseEmpty(runFlags(), c)
	if err == nil {
		request.Script, request.Args, err = splitArguments(c.Args().Slice(), c.String(flagEntry), h)
	}
	if err == nil {
		err = checkSwitches(c)
	}
	if err != nil {
		return refusedSpec(id), err
	}
	return p.resolved(c, request, nil, h, id)
}

// resolved is the spec of a request, with what --learn changes in it.
func (p launcher) resolved(c *cli.Context, request resolve.Request, o *order.Order, h host.Host, id agent.ID) (agent.Spec, error) {
	if c.String(flagLearnNetwork) == learnAllow {
		request.Set(settings.NetworkMode, agent.NetworkPublic)
	}
	file, request, err := withManifest(request, o, h)
	if err != nil {
		return refusedSpec(id), err
	}
	if file != nil && file.Written.Program != "" {
		if err := p.readyProgram(c, file, &request, h); err != nil {
			return refusedSpec(id), err
		}
	}
	spec, err := resolve.Spec(request, h, id)
	if err == nil && c.String(flagLearnNetwork) == learnAsk && spec.Network == agent.NetworkNone {
		request.Set(settings.NetworkMode, agent.NetworkAllowlist) // with no rule: each target is refused, or asked about
		spec, err = resolve.Spec(request, h, id)
	}
	spec.Learn = c.String(flagLearn) != ""
	if file != nil {
		err = file.Mistake(err, requestOf(c).Values)
	}
	if err == nil && !c.Bool(flagJSON) {
		reportReach(p.screen, file, spec)
	}
	if err == nil && file != nil {
		_, err = program(p).addManifests(c, file.Children, h)
	}
	return spec, err
}

// refusedSpec is for the record of a refusal.
func refusedSpec(id agent.ID) agent.Spec {
	spec := policies.Standard()
	spec.ID = id
	return spec
}

// requestOf copies the flags into a request, as text: policies/resolve parses them. A
// flag that the command does not have is empty.
func requestOf(c *cli.Context) resolve.Request {
	request := resolve.Request{Policy: c.String(flagPolicy), PolicyShadow: c.String(flagShadow)}
	for i := range settings.All() {
		switch s := &settings.All()[i]; {
		case s.Flag == "":
		case s.On != "" && c.Bool(s.Flag):
			request.Set(s.Flag, s.On)
		case s.On == "" && s.Many():
			request.Add(s.Flag, c.StringSlice(s.Flag)...)
		case s.On == "":
			request.Set(s.Flag, c.String(s.Flag))
		}
	}
	return request
}

// splitArguments separates SCRIPT from the agent's arguments behind "--". With --entrypoint the
// latter are that program's arguments, as with docker.
func splitArguments(given []string, entry string, h host.Host) (script string, args []string, err error) {
	own := given
	if end := slices.Index(given, terminator); end >= 0 {
		own, args = given[:end], given[end+1:]
	}
	switch {
	// docker has an IMAGE in this place; clove has none.
	case entry != "" && len(own) > 0:
		return "", nil, invalid(flagEntry, "omit it, or write clove run --"+flagEntry+" "+entry+" -- "+strings.Join(own, " "),
			"a script is run by its own interpreter")
	case entry != "":
		return "", slices.Concat([]string{entry}, args), nil
	case len(own) > 1:
		return "", nil, secondArgument(own, h.Absolute)
	case len(own) == 0:
		return "", args, nil
	case own[0] == "":
		return "", nil, invalid("", "clove run SCRIPT", "the script's name is empty")
	}
	return own[0], args, nil
}

// checkSwitches checks flags that are no part of a spec: what docker must be asked for
// and clove always does, and what works only with or only without -d.
func checkSwitches(c *cli.Context) error {
	if c.IsSet(flagInit) && !c.Bool(flagInit) {
		return invalid(flagInit, "omit the flag", "every sandbox has an init process of clove's")
	}
	// docker takes both NAME:VALUE and NAME=VALUE.
	for _, text := range c.StringSlice(flagOption) {
		switch key, value, _ := strings.Cut(strings.Replace(text, ":", "=", 1), "="); {
		case key == "no-new-privileges" && value != "false": // no agent can gain any
		case key == "seccomp":
			return invalid(flagOption, "write --"+settings.Seccomp+" "+value, "the seccomp profile has a flag of its own")
		default:
			return invalid(flagOption, "only no-new-privileges is accepted, and it always applies; every agent is protected in the same way", "%q is not supported", text)
		}
	}
	if !c.Bool(settings.Detach) {
		if c.String(flagDelay) != "" {
			return invalid(flagDelay, "add -d", "only cloved can do that")
		}
		return nil
	}
	if c.Bool(flagClipboard) {
		return invalid(flagClipboard, "give it to clove attach", "it does not go together with -d")
	}
	for _, flag := range []string{flagResult, flagNetworkLog} {
		if c.String(flag) != "" {
			return invalid(flag, "omit it: clove inspect and clove wait --json show the record", "it does not go together with -d")
		}
	}
	return nil
}

// unseen returns the first argument of a command that names a file in the caller's folder,
// if the agent had no workspace in which it could find it; otherwise it is empty.
func unseen(spec agent.Spec, dir string) string {
	if spec.Files.Workspace != "" || spec.Files.Rootfs != "" {
		return ""
	}
	for i, argument := range spec.Command {
		// The command itself is looked up in PATH if it has no slash.
		inPath := i == 0 && !strings.Contains(argument, "/")
		if !inPath && argument != "" && !strings.HasPrefix(argument, "-") && filepath.IsLocal(argument) && host.IsFile(filepath.Join(dir, argument)) {
			return argument
		}
	}
	return ""
}

// reportUnseen mentions the flag that shows the caller's folder to the agent.
func reportUnseen(s *screen, spec agent.Spec, dir string) {
	if argument := unseen(spec, dir); argument != "" {
		s.say("clove", cyan, argument+" is a file of this folder, which the agent does not see")
		s.say("hint", cyan, "--workspace . shows the folder to a command; clove run SCRIPT does so by itself")
	}
}

package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/build"
	"clove.run/clove/policies/host"
)

// runSpec builds the spec of a command line of run. With an error it returns as much of
// the spec as is known, for the record of the refusal.
func runSpec(c *cli.Context, h host.Host, id agent.ID) (agent.Spec, error) {
	request := requestOf(c)
	err := refuseEmpty(runFlags(), c)
	if err == nil {
		request.Script, request.Args, err = splitWords(c.Args().Slice(), c.String(flagEntry), h)
	}
	if err == nil {
		err = checkSwitches(c)
	}
	if err != nil {
		// For the record of the refusal.
		spec := policies.Standard()
		spec.ID = id
		return spec, err
	}
	if c.String(flagLearnNetwork) == learnAllow {
		request.Network = agent.NetworkPublic
	}
	spec, err := build.Spec(request, h, id)
	if err == nil && c.String(flagLearnNetwork) == learnAsk && spec.Network == agent.NetworkNone {
		request.Network = agent.NetworkAllowlist // with no rule: each target is refused, or asked about
		spec, err = build.Spec(request, h, id)
	}
	spec.Learn = c.String(flagLearn) != ""
	return spec, err
}

// requestOf copies the flags into a request, as text: policies/build parses them. A
// flag that the command does not have is empty.
func requestOf(c *cli.Context) build.Request {
	return build.Request{
		Policy: c.String(flagPolicy), PolicyShadow: c.String(flagShadow),

		Memory: c.String(flagMemory), MemorySwap: c.String(flagMemorySwap), CPUs: c.String(flagCPUs), CPUSet: c.String(flagCPUSet),
		Pids: c.String(flagPids), Ulimits: c.StringSlice(flagUlimit), CPUTime: c.String(flagCPUTime), Timeout: c.String(flagTimeout),
		StopTimeout: c.String(flagStopTimeout), StopSignal: c.String(flagStopSignal), StartTimeout: c.String(flagStartTimeout),
		Output: c.String(flagOutput), Disk: c.String(flagDisk), Shm: c.String(flagShm),

		Volumes: c.StringSlice(flagVolume), Mounts: c.StringSlice(flagMount), Tmpfs: c.StringSlice(flagTmpfs), ReadOnly: c.Bool(flagReadOnly), Execute: c.StringSlice(flagExecute), Read: c.StringSlice(flagRead),
		Rootfs: c.String(flagRootfs), Workspace: c.String(flagWorkspace), Python: c.String(flagPython),

		Env: c.StringSlice(flagEnv), EnvFiles: c.StringSlice(flagEnvFile), Workdir: c.String(flagWorkdir), User: c.String(flagUser),
		Name: c.String(flagName), Labels: c.StringSlice(flagLabel), Hostname: c.String(flagHostname),

		Network: c.String(flagNetwork), Allow: c.StringSlice(flagAllow), Deny: c.StringSlice(flagDeny), Publish: c.StringSlice(flagPublish),
		HostPorts: c.StringSlice(flagHostPort), DNS: c.StringSlice(flagDNS), Hosts: c.StringSlice(flagAddHost),
		NetConnections: c.String(flagNetConnections), NetRate: c.String(flagNetRate), NetBytes: c.String(flagNetBytes),

		AgentSocket: c.Bool(flagAgentSocket), Models: c.StringSlice(flagModel), ModelSetup: c.String(flagModelSetup), ModelLog: c.Bool(flagModelLog), Grants: c.StringSlice(flagGrant), Budgets: c.StringSlice(flagBudget), AtEnd: c.String(flagAtEnd),
		OnWarn: c.String(flagOnWarn), OnEnd: c.String(flagOnEnd), OnDenial: c.String(flagOnDenial), Namespace: c.String(flagNamespace),

		Seccomp: c.String(flagSeccomp), CapDrop: c.StringSlice(flagCapDrop), AllowUnenforced: c.StringSlice(flagWeaken),

		Detached: c.Bool(flagDetach), Restart: c.String(flagRestart), Schedule: c.String(flagSchedule), KeepFiles: c.Bool(flagKeep),
		After: c.StringSlice(flagAfter), Priority: c.String(flagPriority),

		Interactive: c.Bool(flagInteractive), Terminal: c.Bool(flagTTY), Remove: c.Bool(flagRemove),
	}
}

// splitWords separates SCRIPT from the agent's words behind "--". With --entrypoint the
// words are that program's arguments, as with docker.
func splitWords(words []string, entry string, h host.Host) (script string, args []string, err error) {
	own := words
	if end := slices.Index(words, terminator); end >= 0 {
		own, args = words[:end], words[end+1:]
	}
	switch {
	// docker's IMAGE would stand there; clove has none.
	case entry != "" && len(own) > 0:
		return "", nil, invalid(flagEntry, "omit it, or write clove run --"+flagEntry+" "+entry+" -- "+strings.Join(own, " "),
			"a script is run by its own interpreter")
	case entry != "":
		return "", slices.Concat([]string{entry}, args), nil
	case len(own) > 1:
		return "", nil, secondWord(own, h.Absolute(own[0]))
	case len(own) == 0:
		return "", args, nil
	case own[0] == "":
		return "", nil, invalid("", "clove run SCRIPT", "the script's name is empty")
	}
	return own[0], args, nil
}

// secondWord refuses two words before "--". The first was meant as a script with
// arguments, or as docker's IMAGE COMMAND; whether such a file exists decides which
// hint is given. path is where the script would be.
func secondWord(own []string, path string) error {
	rest := strings.Join(own[1:], " ")
	hint := "write arguments of the agent after --: clove run " + own[0] + " -- " + rest
	if _, err := os.Stat(path); err != nil {
		hint = fmt.Sprintf("there is no script %.64q, and there are no images; a program of the host's runs as clove run -- %s", own[0], rest)
	}
	return invalid("", hint, "there is a second word, %q, before --", own[1])
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
			return invalid(flagOption, "write --"+flagSeccomp+" "+value, "the seccomp profile has a flag of its own")
		default:
			return invalid(flagOption, "only no-new-privileges is accepted, and it always applies; every agent is protected in the same way", "%q is not supported", text)
		}
	}
	if !c.Bool(flagDetach) {
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

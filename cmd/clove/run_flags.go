package main

import (
	"slices"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/settings"
)

// Flags of run that code asks for, by name. Package settings has the names of the others.
const (
	flagRootfs = "rootfs"

	flagEnv     = "env"
	flagEntry   = "entrypoint"
	flagWorkdir = "workdir"
	flagUser    = "user"
	flagName    = "name"

	flagNetwork        = "network"
	flagNetworkLog     = "network-log"
	flagExplainNetwork = "explain-network"

	flagGrant  = "grant"
	flagBudget = "budget"
	flagAtEnd  = "at-end"

	flagOption = "security-opt"
	flagPolicy = "policy"
	flagShadow = "policy-shadow"

	flagLearn        = "learn"
	flagLearnNetwork = "learn-network"
	flagLearnReads   = "learn-reads"

	flagRestart = "restart"
	flagAfter   = "after"
	flagDelay   = "delay"

	flagInteractive = "interactive"
	flagTTY         = "tty"
	flagInit        = "init"
	flagIDFile      = "cidfile"
	flagResult      = "result"
	flagJSON        = "json"
	flagDebug       = "debug"
)

// runFlags lists every flag of run, with the default that the standard level gives it. The
// help shows these; an empty flag is filled in by policies/resolve.
func runFlags() []cli.Flag {
	var flags []cli.Flag
	standard := policies.Standard()
	for i := range settings.All() {
		if s := &settings.All()[i]; s.Flag != "" {
			flags = append(flags, settingFlag(s, standard))
		}
	}
	return append(flags, ownFlags(standard)...)
}

// settingFlag is the flag of a row. Sizes and times are strings, because urfave/cli's own
// numbers know no units.
func settingFlag(s *settings.Setting, standard agent.Spec) cli.Flag {
	defaultText := s.Default
	if defaultText == "" && s.Say != nil {
		defaultText = s.Say(standard)
	}
	switch {
	case s.On != "":
		return boolean(s.Group, s.Flag, s.Short, s.Usage)
	case s.Many():
		return values(s.Group, s.Flag, s.Short, s.Usage, defaultText)
	}
	return value(s.Group, s.Flag, s.Short, s.Usage, defaultText)
}

// ownFlags are those that are no settings: where the request comes from, and where the result
// goes. --security-opt and --init are docker's: what they ask for is always so.
func ownFlags(standard agent.Spec) []cli.Flag {
	return []cli.Flag{
		value(settings.GroupIdentity, flagEntry, "", "program to run, with the words behind -- as its arguments", ""),
		value(settings.GroupNetwork, flagNetworkLog, "", "write each decision to this file as a line of JSON", ""),
		boolean(settings.GroupNetwork, flagExplainNetwork, "", "show the rules and where each came from, and run nothing"),
		values(settings.GroupWalls, flagOption, "", "only no-new-privileges, which always applies", ""),
		value(settings.GroupWalls, flagPolicy, "", "what the defaults come from: a level (unrestricted, standard, sandboxed, readonly, minimal), a name or a file of clove policy", standard.Policy.Name),
		value(settings.GroupWalls, flagShadow, "", "a stricter one that is decided beside it and refuses nothing: the record has what it would have refused", "none"),
		value(settings.GroupWalls, flagLearn, "", "write the smallest policy for what this run uses to NAME.yaml, and what was seen beside it", ""),
		value(settings.GroupWalls, flagLearnNetwork, "", "targets that the policy refuses while --learn watches: ask, allow (the internet) or deny", "deny"),
		boolean(settings.GroupWalls, flagLearnReads, "", "with --learn: the policy names what may be read, too"),
		value(settings.GroupDetached, flagDelay, "", "start it after this time", "at once"),
		boolean(settings.GroupResult, flagClipboard, "", clipboardUsage),
		boolean(settings.GroupResult, flagInit, "", "accepted for docker's users: every sandbox has an init process"),
		value(settings.GroupResult, flagIDFile, "", "write the ID to this file, which must not exist", ""),
		value(settings.GroupResult, flagResult, "", "write the exit record to this file", ""),
		boolean(settings.GroupResult, flagJSON, "", "write the exit record, or {\"error\":…}, to stderr as one line of JSON"),
		boolean(settings.GroupResult, flagDebug, "", "show the plan and each step's time on stderr"),
	}
}

// aliases avoids an empty alias, which urfave/cli would show as a lone dash.
func aliases(short string) []string {
	if short == "" {
		return nil
	}
	return []string{short}
}

// value is a flag with one value. The default is only text for the help: the flag
// itself is empty unless it is given.
func value(group, name, short, usage, standard string) cli.Flag {
	return &cli.StringFlag{Category: group, Name: name, Aliases: aliases(short), Usage: usage, DefaultText: standard}
}

// values is a flag that may be repeated.
func values(group, name, short, usage, standard string) cli.Flag {
	// KeepSpace: the blanks of an environment variable are its own.
	return &cli.StringSliceFlag{Category: group, Name: name, Aliases: aliases(short), Usage: usage, DefaultText: standard, KeepSpace: true}
}

// boolean is a switch. Its default is not shown: it is always off.
func boolean(group, name, short, usage string) cli.Flag {
	return &cli.BoolFlag{Category: group, Name: name, Aliases: aliases(short), Usage: usage, DisableDefaultText: true}
}

// jsonFlag is --json of commands that list something.
func jsonFlag(usage string) cli.Flag {
	return &cli.BoolFlag{Name: flagJSON, Usage: usage, DisableDefaultText: true}
}

// refuseEmpty rejects flags with an empty value: --timeout "$T" with T unset must not
// mean a run without a time limit.
func refuseEmpty(flags []cli.Flag, given *cli.Context) error {
	for _, f := range flags {
		name := f.Names()[0]
		if !given.IsSet(name) {
			continue
		}
		empty := false
		switch f.(type) {
		case *cli.StringFlag:
			empty = given.String(name) == ""
		case *cli.StringSliceFlag:
			empty = slices.Contains(given.StringSlice(name), "")
		}
		if empty {
			return invalid(name, "give a value, or omit the flag", "its value is empty")
		}
	}
	return nil
}

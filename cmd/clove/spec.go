package main

import (
	"fmt"
	"os"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/seccomp"
)

// flagReader gives the flags of one command line.
type flagReader interface {
	IsSet(name string) bool
	String(name string) string
	StringSlice(name string) []string
	Bool(name string) bool
}

// request is one command line on its way to a spec.
type request struct {
	flags flagReader
	words []string // SCRIPT, if any, then "--" and what is the agent's
	host  host
	image bool // the root is an image's, of which this host knows nothing

	script string   // empty: a command of the sandbox's own
	args   []string // what stood behind "--"
	path   []string // directories that come first in PATH inside
	spec   agent.Spec
}

// buildSpec turns flags and words into a spec on top of the standard level. It
// makes nothing. The spec that comes with an error is what was understood so
// far; it must not be run.
func buildSpec(flags flagReader, words []string, h host, id agent.ID) (agent.Spec, error) {
	r := &request{flags: flags, words: words, host: h, spec: policies.Standard()}
	r.spec.ID = id
	for _, step := range specSteps {
		if err := step(r); err != nil {
			return r.spec, err
		}
	}
	return r.spec, nil
}

// specSteps are in the order in which a user wants to hear of mistakes; the
// command decides over prefixes and PATH, so the environment comes last.
var specSteps = []func(*request) error{
	(*request).refuseEmpty,
	(*request).splitWords,
	(*request).readSwitches,
	(*request).readDetached,
	(*request).readPolicy,
	(*request).readNetwork,
	(*request).readSeccomp,
	(*request).readPrivileges,
	(*request).readHosts,
	(*request).readStopSignal,
	(*request).readWeakened,
	(*request).readIdentity,
	(*request).readLimits,
	(*request).readUlimits,
	(*request).readFiles,
	(*request).readCommand,
	(*request).nameRun,
	(*request).readEnvironment,
	(*request).checkExecSize,
	(*request).checkWhole,
}

// foreignRoot tells whether the agent's programs are not this host's.
func (r *request) foreignRoot() bool { return r.image || r.spec.Files.Rootfs != "" }

// invalid is a mistake in what was typed. flag is the flag's name or empty.
func invalid(flag, hint, format string, values ...any) error {
	if flag != "" {
		flag = "--" + flag
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: flag, Message: fmt.Sprintf(format, values...), Hint: hint}
}

func (r *request) refuseEmpty() error { return refuseEmpty(runFlags(), r.flags) }

// secondWord refuses two words before "--": arguments of a script, whose place is path, or
// docker's IMAGE COMMAND.
func secondWord(own []string, path string) error {
	rest := strings.Join(own[1:], " ")
	hint := "arguments of the agent stand behind --: clove run " + own[0] + " -- " + rest
	if _, err := os.Stat(path); err != nil {
		hint = fmt.Sprintf("there is no script %.64q, and there are no images; a program of the host's runs as clove run -- %s", own[0], rest)
	}
	return invalid("", hint, "there is a second word, %q, before --", own[1])
}

// splitWords tells SCRIPT from what belongs to the agent.
func (r *request) splitWords() error {
	end := slices.Index(r.words, terminator)
	own := r.words
	if end >= 0 {
		own, r.args = r.words[:end], r.words[end+1:]
	}
	if program := r.flags.String(flagEntry); program != "" {
		r.args = slices.Concat([]string{program}, r.args)
		if len(own) > 0 {
			return invalid(flagEntry, "leave it away, or write clove run --"+flagEntry+" "+program+" -- "+strings.Join(own, " "),
				"a script is run by its own interpreter")
		}
	}
	switch {
	case len(own) > 1:
		return secondWord(own, r.host.absolute(own[0]))
	case len(own) == 1:
		r.script = own[0]
	case len(r.args) == 0:
		return invalid("", "clove run SCRIPT, or clove run -- COMMAND", "there is nothing to run")
	case r.args[0] == "":
		return invalid("", "clove run -- COMMAND", "the command is empty")
	}
	if r.script == "" && len(own) == 1 {
		return invalid("", "clove run SCRIPT", "the script's name is empty")
	}
	return nil
}

// readSwitches reads what has nothing to get wrong.
func (r *request) readSwitches() error {
	r.spec.Terminal = r.flags.Bool(flagTTY)
	r.spec.Remove = r.flags.Bool(flagRemove)
	r.spec.Files.ReadOnly = r.flags.Bool(flagReadOnly)
	return nil
}

// readPolicy: the level that is asked for is the one that already lies below.
func (r *request) readPolicy() error {
	if name := r.flags.String(flagPolicy); name != "" && name != policies.StandardName {
		return invalid(flagPolicy, "leave the flag away, or write --policy "+policies.StandardName, "there is no policy %q", name)
	}
	return nil
}

// readSeccomp carries a profile's text in the spec: the file may change.
func (r *request) readSeccomp() error {
	name := r.flags.String(flagSeccomp)
	if name == "" {
		return nil
	}
	if slices.Contains(seccomp.Names(), name) {
		r.spec.Seccomp = agent.Seccomp{Profile: name}
		return nil
	}
	path := r.host.absolute(name)
	document, err := readBounded(path, seccomp.MaxDocumentBytes)
	if err == nil {
		_, err = seccomp.Parse(document)
	}
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--" + flagSeccomp, Message: fmt.Sprintf("cannot use %q", name),
			Hint: "it takes " + strings.Join(seccomp.Names(), ", ") + " or a file in docker's JSON format", Err: err}
	}
	r.spec.Seccomp = agent.Seccomp{Profile: path, Document: document}
	return nil
}

// readWeakened passes the words on: runtime knows which controls have a weaker
// form, and refuses the others before it makes anything.
func (r *request) readWeakened() error {
	r.spec.AllowUnenforced = r.flags.StringSlice(flagWeaken)
	return nil
}

// checkWhole is every edge's own check. The steps before it know flags, and say the same
// of most things in their words.
func (r *request) checkWhole() error { return r.spec.Validate() }

// readBounded reads a regular file of at most limit bytes.
func readBounded(path string, limit int64) ([]byte, error) {
	info, err := os.Stat(path)
	switch {
	case err != nil:
		return nil, err
	case !info.Mode().IsRegular():
		return nil, fmt.Errorf("%s is not a regular file", path)
	case info.Size() > limit:
		return nil, fmt.Errorf("%s has more than %d bytes", path, limit)
	}
	return os.ReadFile(path)
}

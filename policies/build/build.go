package build

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/seccomp"
)

// builder is one request on its way to a spec.
type builder struct {
	asked  Request
	typed  Request // asked, before a policy was laid below it
	host   host.Host
	image  bool     // the root is an image's
	path   []string // directories that come first in PATH inside
	policy *Policy  // nil: the standard level
	spec   agent.Spec
}

// Spec builds the spec of a run with this ID. The spec that comes with an error is what was
// understood so far: it is for a record of the refusal and must not be run.
func Spec(asked Request, h host.Host, id agent.ID) (agent.Spec, error) {
	b := &builder{asked: asked, typed: asked, host: h, spec: policies.Standard()}
	// First, because the run's name and its CLOVE_ID are made from it.
	b.spec.ID = id
	return b.build(specSteps)
}

// ImageSpec builds a spec whose root is an image. On this host it looks up only files that
// go along: the script, the workspace, a seccomp profile. It has no ID, no name of its own
// making and no environment: Variables gives what was asked for.
func ImageSpec(asked Request, h host.Host) (agent.Spec, error) {
	b := &builder{asked: asked, host: h, spec: policies.Standard(), image: true}
	return b.build(imageSteps)
}

// Network builds what decides over the network: the mode, the rules and the host's ports.
func Network(asked Request, h host.Host) (agent.Spec, error) {
	b := &builder{asked: asked, host: h, spec: policies.Standard()}
	return b.build(networkSteps)
}

// build stops at the first mistake: those behind it may be consequences.
func (b *builder) build(steps []func(*builder) error) (agent.Spec, error) {
	for _, step := range steps {
		if err := step(b); err != nil {
			return b.spec, err
		}
	}
	return b.spec, nil
}

// specSteps are in the order in which a user wants to learn of mistakes. Some depend on
// others: the command decides over prefixes and PATH, so the environment comes after it,
// and only with both is the size known that execve(2) gets.
var specSteps = []func(*builder) error{
	func(b *builder) error { return b.asked.CheckCommand() },
	(*builder).readPolicy,
	(*builder).readSwitches,
	(*builder).readDetached,
	(*builder).readNetwork,
	(*builder).readSeccomp,
	(*builder).readCapabilities,
	(*builder).readHosts,
	(*builder).readStopSignal,
	(*builder).readIdentity,
	(*builder).readLimits,
	(*builder).readUlimits,
	(*builder).readFiles,
	(*builder).readCommand,
	(*builder).nameRun,
	(*builder).readKernel,
	(*builder).readEnvironment,
	(*builder).checkModelSetup,
	(*builder).checkExecSize,
	(*builder).readShadow,
	(*builder).checkWhole,
	(*builder).checkCeiling,
}

// imageSteps leave out what only this host can hold: names and environment are the
// cluster's, and the rest has no counterpart there.
var imageSteps = []func(*builder) error{
	func(b *builder) error { return b.asked.CheckCommand() },
	(*builder).readPolicy,
	(*builder).readSwitches,
	(*builder).readRestart,
	(*builder).readNetwork,
	(*builder).readSeccomp,
	(*builder).readIdentity,
	(*builder).readLimits,
	(*builder).readFiles,
	(*builder).readCommand,
}

// policySteps read what a policy's document has.
var policySteps = []func(*builder) error{
	(*builder).readSwitches,
	(*builder).readNetwork,
	(*builder).readSeccomp,
	(*builder).readCapabilities,
	(*builder).readIdentity,
	(*builder).readLimits,
	(*builder).readUlimits,
	(*builder).readFiles,
	(*builder).readKernel,
}

// networkSteps are for `clove why`, which has no run: they need no file and no environment.
var networkSteps = []func(*builder) error{
	(*builder).readPolicy,
	(*builder).readNetworkMode,
	(*builder).readRules,
	(*builder).readHostPorts,
	(*builder).checkNetwork,
}

// foreignRoot reports whether the agent's programs are not this host's, but an image's or
// those of --rootfs. Interpreters are then named and not looked for here.
func (b *builder) foreignRoot() bool { return b.image || b.spec.Files.Rootfs != "" }

// invalid is a mistake in a request. field is the field's name on the command line, without
// dashes, or empty.
func invalid(field, hint, format string, values ...any) error {
	if field != "" {
		field = "--" + field
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: field, Message: fmt.Sprintf(format, values...), Hint: hint}
}

// CheckCommand rejects a request that names nothing to run.
func (r Request) CheckCommand() error {
	switch {
	case r.Script != "":
		return nil
	case len(r.Args) == 0:
		return invalid("", "clove run SCRIPT, or clove run -- COMMAND", "there is nothing to run")
	case r.Args[0] == "":
		return invalid("", "clove run -- COMMAND", "the command is empty")
	}
	return nil
}

// readSwitches reads what cannot be wrong here. Runtime knows which controls have a
// weaker form, and refuses the others before it makes anything.
func (b *builder) readSwitches() error {
	b.spec.Terminal = b.asked.Terminal
	b.spec.Remove = b.asked.Remove
	b.spec.Files.ReadOnly = b.asked.ReadOnly
	b.spec.AllowUnenforced = b.asked.AllowUnenforced
	return nil
}

// readPolicy lays the request over the policy's document. The standard level is what the spec
// began as.
func (b *builder) readPolicy() error {
	if b.asked.Policy == "" || b.asked.Policy == policies.StandardName {
		return nil
	}
	policy, err := LoadPolicy(b.asked.Policy, b.host)
	if err != nil {
		return err
	}
	b.asked = b.asked.over(requestOf(policy.Document))
	b.spec.Policy, b.policy = policy.Spec.Policy, policy
	return nil
}

// readSeccomp puts a profile's text into the spec, because the file may change before a later
// start of the run.
func (b *builder) readSeccomp() error {
	name := b.asked.Seccomp
	if name == "" {
		return nil
	}
	// Names come first, so that a file called "strict" in the working directory changes
	// nothing.
	if slices.Contains(seccomp.Names(), name) {
		b.spec.Seccomp = agent.Seccomp{Profile: name}
		return nil
	}
	path := b.host.Absolute(name)
	document, err := host.ReadBounded(path, seccomp.MaxDocumentBytes)
	if err == nil {
		_, err = seccomp.Parse(document)
	}
	if err != nil {
		return &agent.Error{Kind: agent.KindInvalid, Step: "--seccomp", Message: fmt.Sprintf("cannot use %q", name),
			Hint: "it takes " + strings.Join(seccomp.Names(), ", ") + " or a file in docker's JSON format", Err: err}
	}
	b.spec.Seccomp = agent.Seccomp{Profile: path, Document: document}
	return nil
}

// checkWhole is the check that every edge makes. Most of its mistakes were found by the steps
// before it, whose errors name what the user typed.
func (b *builder) checkWhole() error { return b.spec.Validate() }

// checkCeiling is also made by cloved, whose answer counts: here it spares a member the way.
func (b *builder) checkCeiling() error {
	if b.host.Ceiling == "" {
		return nil
	}
	err := CheckCeiling(b.spec, b.host.Ceiling)
	if b.host.UID != 0 && errors.Is(err, fs.ErrPermission) {
		return nil // only cloved may read it
	}
	return err
}

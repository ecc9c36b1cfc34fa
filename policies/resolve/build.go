package resolve

import (
	"errors"
	"io/fs"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
	"clove.run/clove/seccomp"
)

// builder is one request on its way to a spec.
type builder struct {
	asked  Request
	typed  Request // asked, before a policy was laid below it
	policy settings.Policy
	host   host.Host
	image  bool     // the root is an image's
	path   []string // directories that come first in PATH inside
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
	b := &builder{asked: asked, typed: asked, host: h, spec: policies.Standard(), image: true}
	return b.build(imageSteps)
}

// Network builds what decides over the network: the mode, the rules and the host's ports.
func Network(asked Request, h host.Host) (agent.Spec, error) {
	b := &builder{asked: asked, typed: asked, host: h, spec: policies.Standard()}
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

// read is the step that reads a section.
func read(s func() *settings.Section) func(*builder) error {
	return func(b *builder) error {
		r := settings.Reader{Values: b.asked.Values, Policy: b.policy, Host: b.host, Image: b.image, Spec: &b.spec}
		return r.Read(*s())
	}
}

// specSteps are in the order in which a user wants to learn of mistakes. Some depend on
// others: the command decides over prefixes and PATH, so the environment comes after it,
// and only with both is the size known that execve(2) gets.
var specSteps = []func(*builder) error{
	func(b *builder) error { return b.asked.CheckCommand() },
	(*builder).readPolicy,
	read(settings.Result),
	read(settings.Weaken),
	(*builder).refuseDetached,
	read(settings.Detached),
	read(settings.Network),
	read(settings.Filter),
	read(settings.Privileges),
	read(settings.Hosts),
	read(settings.Identity),
	func(b *builder) error {
		b.spec.ClockStart, b.spec.Manifest = b.asked.ClockStart, b.asked.Manifest
		return nil
	},
	read(settings.Limits),
	read(settings.Ulimits),
	read(settings.Files),
	(*builder).checkTargets,
	(*builder).showHomeDirs,
	(*builder).readCommand,
	(*builder).placeHome,
	(*builder).nameRun,
	read(settings.Shared),
	(*builder).readEnvironment,
	(*builder).checkModels,
	(*builder).readShadow,
	(*builder).checkWhole,
	(*builder).checkCeiling,
}

// imageSteps leave out what only this host can hold: names and environment are the
// cluster's, and the rest has no counterpart there.
var imageSteps = []func(*builder) error{
	func(b *builder) error { return b.asked.CheckCommand() },
	(*builder).readPolicy,
	read(settings.Result),
	read(settings.Detached),
	read(settings.Network),
	read(settings.Filter),
	read(settings.Identity),
	read(settings.Limits),
	read(settings.Files),
	(*builder).checkTargets,
	(*builder).readCommand,
}

// policySteps read what a policy's document has.
var policySteps = []func(*builder) error{
	read(settings.Weaken),
	read(settings.Network),
	read(settings.Filter),
	read(settings.Privileges),
	read(settings.Identity),
	read(settings.Limits),
	read(settings.Ulimits),
	read(settings.Files),
	(*builder).checkTargets,
	read(settings.Shared),
}

// networkSteps are for `clove why`, which has no run: they need no file and no environment.
var networkSteps = []func(*builder) error{(*builder).readPolicy, read(settings.Network)}

// foreignRoot reports whether the agent's programs are not this host's, but an image's or
// those of --rootfs. Interpreters are then named and not looked for here.
func (b *builder) foreignRoot() bool { return b.image || b.spec.Files.Rootfs != "" }

// invalid is a mistake in a request. field is the field's name on the command line, without
// dashes, or empty.
func invalid(field, hint, format string, values ...any) error {
	return settings.Invalid(field, hint, format, values...)
}

// CheckCommand rejects a request that names nothing to run.
func (r Request) CheckCommand() error {
	switch {
	case r.Script != "" || r.Program != "":
		return nil
	case len(r.Args) == 0 && r.Has(settings.Hostname):
		return invalid("", "clove run -h NAME SCRIPT, or clove run -h NAME -- COMMAND; -h alone shows the help", "there is nothing to run")
	case len(r.Args) == 0:
		return invalid("", "clove run SCRIPT, or clove run -- COMMAND", "there is nothing to run")
	case r.Args[0] == "":
		return invalid("", "clove run -- COMMAND", "the command is empty")
	}
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
	below := policy.Document.Values
	b.policy = settings.Policy{Name: policy.Document.Name, Values: below}
	if mode := b.typed.Text(settings.NetworkMode); mode != "" && !settings.HasRules(mode) {
		b.policy.Values = settings.Values{} // its rules mean nothing there
	}
	asked := b.typed.Ask(below)
	// The user named what is to be reached beside what the policy lets through.
	if mode := asked.Text(settings.NetworkMode); !b.typed.Has(settings.NetworkMode) && mode == agent.NetworkNone && b.typed.hasRules() {
		asked.Set(settings.NetworkMode, agent.NetworkAllowlist)
	}
	b.asked.Values, b.spec.Policy = asked, policy.Spec.Policy
	return nil
}

func (r Request) hasRules() bool {
	return len(r.Values[settings.Allow])+len(r.Values[settings.Deny]) > 0
}

// refuseDetached refuses, in a run of the foreground, each setting that only cloved carries out.
func (b *builder) refuseDetached() error {
	for _, row := range settings.Detached().Rows {
		hint := "add -d"
		if row.Flag == settings.KeepFiles {
			hint = "add -d and --schedule"
		}
		if b.asked.Has(row.Flag) && !b.asked.Has(settings.Detach) {
			return invalid(row.Flag, hint, "only cloved can do that")
		}
	}
	return nil
}

// checkTargets refuses two mounts at one target: the later would hide the earlier, which
// cannot be meant. The workspace counts as a mount at its own target.
func (b *builder) checkTargets() error {
	var seen []string
	for _, bind := range b.spec.Files.Binds {
		seen = append(seen, bind.Target)
	}
	for _, t := range b.spec.Files.Tmpfs {
		seen = append(seen, t.Target)
	}
	for i, target := range seen {
		if slices.Contains(seen[:i], target) {
			return invalid(settings.Volume, "choose another target for one of them", "two mounts have the target %s", target)
		}
		if target == agent.WorkspaceDir && (b.asked.Script != "" || b.spec.Files.Workspace != "") {
			return invalid(settings.Volume, "to show another directory there use --workspace", "the workspace already appears at %s", target)
		}
	}
	return nil
}

// checkModels refuses models beside a filter under which no socket can be made to call them. Its setup comes
// behind the files and the environment, which decide where the home is.
func (b *builder) checkModels() error {
	if profile := b.spec.Seccomp.Profile; b.spec.Kernel.HasModels() && (profile == seccomp.Strict || profile == seccomp.Minimal) {
		return invalid(settings.Model, "add --seccomp standard, or seccomp: standard in the file; the network stays as closed as it is", "models are called over a socket, and the filter %s lets the agent make none", profile)
	}
	if _, err := b.spec.ModelSetupFile(); err != nil {
		f := agent.FailureOf(err)
		return invalid(settings.ModelSetup, f.Hint, "%s", f.Message)
	}
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

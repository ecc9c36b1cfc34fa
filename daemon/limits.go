package daemon

import (
	"math"
	"slices"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rlimits"
	"clove.run/clove/runtime"
	"clove.run/clove/scheduler"
	"clove.run/clove/seccomp"
)

// admissionRules decide what a run may be given: by every caller, and by one other than root.
type admissionRules struct {
	cache  *cache
	config func() Config
	looks  *slots // with the rights of callers
	paths  runtime.Paths
	models *inference
	// secrets are those that a run would be started with. One that it could not use is an error.
	secrets func(agent.Run) ([]api.Secret, error)
}

// checkSpec rejects a spec that is invalid for every caller, or that cloved's own rules
// forbid.
func (l admissionRules) checkSpec(c *request, spec agent.Spec) error {
	if err := spec.Validate(); err != nil {
		return err
	}
	if err := l.config().Users.checkReach(spec, c.peer.principal); err != nil {
		return err
	}
	if err := l.config().checkCeiling(spec); err != nil {
		return err
	}
	if err := l.paths.CheckAmounts(spec.Limits); err != nil {
		return err
	}
	if err := runtime.CheckExecSize(spec.Command, spec.Env, spec.Limits); err != nil {
		return err
	}
	if spec.Kernel.HasModels() {
		if err := l.models.control.Check(spec.Kernel, c.peer.owner); err != nil {
			return err
		}
	}
	if err := l.checkSecrets(spec, c.peer.owner); err != nil {
		return err
	}
	if spec.Schedule != "" {
		if err := scheduler.CheckSchedule(spec.Schedule, time.Now()); err != nil {
			return err
		}
	}
	// Refused at once: such a run would wait in the queue without end.
	if promised := l.config().memoryBytes(); promised > 0 && spec.Limits.MemoryBytes > promised {
		return api.Failure(api.CodeParams, "ask for less, or raise memory_share in cloved's configuration",
			"it wants %d MiB of memory, and all agents together may have %d MiB", spec.Limits.MemoryBytes>>20, promised>>20)
	}
	return nil
}

// checkSecrets rejects a run whose start would fail for its secrets.
func (l admissionRules) checkSecrets(spec agent.Spec, owner agent.Owner) error {
	if len(spec.Kernel.Secrets) == 0 {
		return nil
	}
	all, err := l.secrets(agent.Run{Spec: spec, Owner: owner})
	if err != nil {
		return err
	}
	return runtime.CheckSecrets(spec, owner, all)
}

// comesAfter returns the runs that must come first by their names, as the caller
// writes them, and refuses those that do not exist.
func (l admissionRules) comesAfter(c *request, after []string) ([]string, error) {
	var names []string
	for _, text := range after {
		reference, condition, err := agent.SplitAfter(text)
		if err != nil {
			return nil, err
		}
		first, err := l.cache.resolve(reference, c.peer.principal)
		if err != nil {
			return nil, err
		}
		name := first.Name().For(c.peer.owner.UID)
		if condition != agent.AfterStarted {
			name += ":" + condition
		}
		names = append(names, name)
	}
	return names, nil
}

// noCircle rejects a run that would wait for runs that wait for it themselves.
func (l admissionRules) noCircle(name agent.RunName, after []agent.RunName) error {
	if len(after) == 0 {
		return nil // nothing of the past is read
	}
	if chain := circle(name, after, l.cache.all(func(*agent.Run) bool { return true })); chain != "" {
		return api.Failure(api.CodeParams, "omit one --after", "they would wait for each other: %s", chain)
	}
	return nil
}

// circle returns how a run called name would come after itself; empty: it does not. It goes
// by names and not by ids, because --after means whatever run has the name then.
func circle(name agent.RunName, after []agent.RunName, runs []agent.Run) string {
	behind := map[agent.RunName][]agent.RunName{}
	for _, run := range runs {
		behind[run.Name()] = run.AfterNames()
	}
	seen := map[agent.RunName]bool{}
	var walk func(names []agent.RunName, path string) string
	walk = func(names []agent.RunName, path string) string {
		for _, first := range names {
			path := path + " after " + first.For(name.UID)
			if first == name {
				return path
			}
			if seen[first] {
				continue
			}
			seen[first] = true
			if found := walk(behind[first], path); found != "" {
				return found
			}
		}
		return ""
	}
	return walk(after, name.Name)
}

// Bounds of what runs of a user hold of cloved's memory and of the store, in bytes: they are kept
// as long as the run. Commands and environments are bounded by execve(2) alone, and together.
const (
	maxUserSpec  = 256 << 10 // of a run; its command and environment do not count
	maxUserWords = 32 << 20  // of commands and environments of all runs, from which on one has maxUserSpec, too
)

// wordBytes is what a run's command, which its records have as well, and environment hold.
func wordBytes(spec agent.Spec) (n int) {
	for _, word := range spec.Command {
		n += 3 * len(word)
	}
	for _, entry := range spec.Env {
		n += len(entry)
	}
	return n
}

// checkUser refuses what a caller other than root could not do without cloved:
// read or change host files, use the host's network, do without a protection, or
// take more than the configuration allows.
func (l admissionRules) checkUser(c *request, spec agent.Spec) error {
	if c.peer.root() {
		return nil
	}
	// The cheap checks first: the last one may wait for a slow file system.
	for _, rule := range userRules {
		if rule.broken(spec) {
			return api.Failure(api.CodeDenied, "ask root to start it", "only root may use %s", rule.what).By("", api.RuleUser+rule.name)
		}
	}
	rest := spec
	rest.Command, rest.Env = nil, nil
	if n := rest.TextBytes(); n > maxUserSpec {
		return api.Failure(api.CodeDenied, "put some of it into the workspace, or ask root to start it", "the run's own text (labels, files, rules and the rest) has %d bytes, and a user's may have %d", n, maxUserSpec).By("", api.RuleUser+"text")
	}
	if err := l.checkAmounts(spec.Limits); err != nil {
		return err
	}
	if err := checkRlimits(spec.Limits.Rlimits); err != nil {
		return err
	}
	if spec.Files.Workspace == "" && len(spec.Files.Binds) == 0 {
		return nil
	}
	if err := l.asUser(c, func() error { return shown(spec.Files) }); err != nil {
		return api.Failure(api.CodeDenied, "name what you can read yourself, without the rights of further groups", "%v", err).By("", api.RuleUser+"files")
	}
	return nil
}

// checkAmounts enforces the configured bounds of users. Swap is memory that the
// host has to keep somewhere, so both count together.
func (l admissionRules) checkAmounts(asked agent.Limits) error {
	users := l.config().Users
	swap := asked.MemorySwapBytes
	// -1 is swap without a limit, which is above every bound.
	if swap < 0 {
		swap = math.MaxInt64
	}
	for _, bound := range []struct {
		name, what string
		have       int64
		most       string
	}{{"memory", "memory", asked.MemoryBytes, users.Memory}, {"memory", "memory and swap", swap, users.Memory},
		{"disk", "disk", asked.DiskBytes, users.Disk}, {"memory", "/dev/shm", asked.ShmBytes, users.Memory}} {
		if most, _ := parseSize(bound.most); most > 0 && bound.have > most {
			return api.Failure(api.CodeDenied, "ask for less", "%s of %d MiB is above what a user may have, %s", bound.what, bound.have>>20, bound.most).By("", api.RuleUser+bound.name)
		}
	}
	return nil
}

// checkRlimits refuses resource limits above cloved's own: to raise them takes
// a privilege (setrlimit(2)), and some, like rtprio, reach the whole host.
func checkRlimits(asked []agent.Rlimit) error {
	for _, limit := range asked {
		// Compared with the limits of this process: supervisors inherit them.
		number, known := rlimits.Resource(limit.Name)
		var own unix.Rlimit
		if known && unix.Getrlimit(number, &own) == nil && limit.Hard <= own.Max && limit.Soft <= own.Max {
			continue
		}
		return api.Failure(api.CodeDenied, "ask for less, or ask root to start it", "only root may raise the resource limit %.32q to %d", limit.Name, limit.Hard).By("", api.RuleUser+"rlimits")
	}
	return nil
}

// checkCount bounds the caller's runs, with one more. runs.admission is held, or many requests at
// once would all see one free place.
func (l admissionRules) checkCount(c *request, one agent.Spec) error {
	if c.peer.root() {
		return nil
	}
	users := l.config().Users
	var live, ended int
	words := wordBytes(one)
	long := words > maxUserSpec
	for _, run := range l.cache.all(func(run *agent.Run) bool { return run.Owner.UID == c.peer.owner.UID }) {
		words += wordBytes(run.Spec)
		if run.State == agent.StateEnded {
			ended++
		} else {
			live++
		}
	}
	switch {
	case users.Runs > 0 && live >= users.Runs:
		return api.Failure(api.CodeBusy, "end or remove some", "you have %d runs that have not ended, and may have %d", live, users.Runs).By("", api.RuleUser+"runs")
	case long && words > maxUserWords:
		return api.Failure(api.CodeBusy, "remove some (clove prune), or pass large values in files of the workspace",
			"the commands and environments of your runs would have %d bytes, and one with more than %d is taken up to %d", words, maxUserSpec, maxUserWords).By("", api.RuleUser+"words")
	case users.Kept > 0 && ended >= users.Kept:
		return api.Failure(api.CodeBusy, "remove some: clove prune", "you keep %d runs that have ended, and may keep %d", ended, users.Kept).By("", api.RuleUser+"kept")
	}
	return nil
}

// userRules are what a spec of a user may not hold. A user must gain nothing through cloved
// that the kernel would not give directly, and must not be preferred to others
// (SECURITY.md).
var userRules = []struct {
	name, what string
	broken     func(agent.Spec) bool
}{
	{"rootfs", "another root (--rootfs)", func(s agent.Spec) bool { return s.Files.Rootfs != "" }},
	// The directory of an interpreter is opened with root's rights, not with the user's.
	{"prefixes", "interpreters outside the base system", func(s agent.Spec) bool { return len(s.Files.Prefixes) > 0 }},
	{"network", "the host's network (--network host)", func(s agent.Spec) bool { return s.Network == agent.NetworkHost }},
	{"host-port", "ports of the host (--host-port)", func(s agent.Spec) bool { return len(s.Egress.HostPorts) > 0 }},
	// 0 means any free port.
	{"publish", "ports below 1024 (--publish)", func(s agent.Spec) bool {
		return slices.ContainsFunc(s.Egress.Publish, func(p agent.PublishedPort) bool { return p.Host.Port() > 0 && p.Host.Port() < 1024 })
	}},
	{"seccomp", "other system call filters (--seccomp)", func(s agent.Spec) bool {
		return s.Seccomp.Document != nil || s.Seccomp.Profile == agent.SeccompUnconfined || !slices.Contains(seccomp.Names(), s.Seccomp.Profile)
	}},
	{"allow-unenforced", "--allow-unenforced", func(s agent.Spec) bool { return len(s.AllowUnenforced) > 0 }},
	// It would overtake the runs of other users. A lower one only lets others pass.
	{"priority", "--priority above 0", func(s agent.Spec) bool { return s.Priority > 0 }},
}

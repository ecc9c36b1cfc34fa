package runtime

import (
	"fmt"
	"os"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/landlock"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

// findLandlock asks the kernel for the version of the interface.
func findLandlock(*probes) (found, missing string) {
	version, err := landlock.Version()
	if err != nil {
		return "", err.Error()
	}
	found = fmt.Sprintf("ABI %d", version)
	if lacks := landlock.Lacks(version); lacks != "" {
		found += ", without " + lacks
	}
	return found, ""
}

// confine decides whether the agent will be in a Landlock domain, and computes its rules. It
// is a second wall behind the mounts, so a kernel without Landlock is no reason to refuse a
// run, unless the run says so.
func (l *launch) confine() error {
	how, _, _ := l.probes.mechanism(agent.ControlLandlock)
	l.files = domain(l.spec, l.plan, l.filters.profile, how)
	switch {
	case l.files != nil:
		l.held.enforced[agent.ControlLandlock] = how
	case l.spec.Files.Landlock == agent.LandlockRequired: // enforce has seen that the host has it
		return &agent.Error{Kind: agent.KindInvalid, Step: "files.landlock", Message: "the filter lets the agent mount, which Landlock would refuse",
			Hint: "use a filter that refuses mount, or omit the key"}
	}
	return nil
}

// domain is what the agent may do in its Landlock domain; nil: it is in none. how is the
// kernel's Landlock, empty where there is none.
func domain(spec agent.Spec, plan rootfs.Plan, filter *specs.LinuxSeccomp, how string) *landlock.Rules {
	if how == "" || mayMount(filter) {
		return nil
	}
	return &landlock.Rules{Files: fileRules(spec, plan), NoTCP: !makesTCP(filter)}
}

// mountCalls change what is mounted where.
var mountCalls = []string{"mount", "umount2", "move_mount", "fsmount", "pivot_root"}

// mayMount reports whether the filter lets the agent mount something. The kernel refuses
// every mount in a domain, so such an agent is in none.
func mayMount(filter *specs.LinuxSeccomp) bool {
	return filter == nil || slices.ContainsFunc(mountCalls, func(call string) bool { return seccomp.Decide(filter, call, [6]uint64{}).Allowed() })
}

// makesTCP reports whether the filter lets the agent make a TCP socket. Where it does, no
// port is refused: a rule names a port and no address, and the agent's own servers on its
// loopback may have any.
func makesTCP(filter *specs.LinuxSeccomp) bool {
	return slices.ContainsFunc([]uint64{unix.AF_INET, unix.AF_INET6}, func(family uint64) bool {
		return seccomp.Decide(filter, "socket", [6]uint64{family, unix.SOCK_STREAM}).Allowed()
	})
}

// changes are the rights in a place where the agent may change files.
const changes = landlock.Read | landlock.Write | landlock.Make

// fileRules are what the mounts allow, as far as rules can say it: they only add up, so what
// is read-only inside of a writable place is not among them.
func fileRules(spec agent.Spec, plan rootfs.Plan) []landlock.Rule {
	rules := []landlock.Rule{{Path: "/", Rights: landlock.Read}}
	add := func(path string, rights landlock.Right) {
		rules = append(rules, landlock.Rule{Path: path, Rights: rights})
	}
	for _, place := range plan.Writable() {
		add(place, changes)
	}
	// Devices are written through a read-only mount, too, and all nodes of /dev are harmless
	// ones. In /proc a process writes what is its own.
	add("/dev", landlock.Read|landlock.Write|landlock.Device)
	add("/proc", landlock.Read|landlock.Write)
	for _, m := range mounts(spec) {
		if (m.Type == "tmpfs" || m.Type == "mqueue") && !slices.Contains(m.Options, "ro") {
			add(m.Destination, changes)
		}
	}
	return rules
}

// makeRuleset makes the ruleset from outside, while nothing of the agent runs. proc's link
// leads to clove-init's root, in its mount namespace.
func (l *launch) makeRuleset() error {
	if l.files == nil {
		return nil
	}
	root, err := os.OpenFile(fmt.Sprintf("/proc/%d/root", l.box.pid), unix.O_PATH|unix.O_DIRECTORY, 0)
	if err != nil {
		return err
	}
	defer root.Close()
	l.ruleset, err = l.files.Make(func(path string) (*os.File, error) { return openInRoot(root, path) })
	if err != nil {
		return err
	}
	l.undo.Add("landlock rules", l.ruleset.Close)
	return nil
}

// openInRoot opens a path for a rule, as a process with that root would: links are resolved
// inside.
func openInRoot(root *os.File, path string) (*os.File, error) {
	fd, err := unix.Openat2(int(root.Fd()), path, &unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS})
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

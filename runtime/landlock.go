package runtime

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/descriptor"
	"clove.run/clove/landlock"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

// confine decides whether the agent will be in a Landlock domain, and computes its rules. It
// is a second wall behind the mounts, so a kernel without Landlock is no reason to refuse a
// run, unless the run says so.
func (l *launch) confine() (err error) {
	if l.readable, err = readable(l.spec, l.plan); err != nil {
		return err
	}
	how, _, _ := l.probes.mechanism(agent.ControlLandlock)
	l.files = domain(l.spec, l.plan, l.filters.profile, how, l.readable)
	switch {
	case l.files != nil:
		l.held.enforced[agent.ControlLandlock] = how
	case l.spec.Files.Read != nil: // enforce has seen that the host has it
		return &agent.Error{Kind: agent.KindInvalid, Step: "--allow-read", Message: "the filter lets the agent mount, which Landlock would refuse",
			Hint: "use a filter that refuses mount, or omit the list"}
	case l.spec.Files.Landlock == agent.LandlockRequired: // enforce has seen that the host has it
		return &agent.Error{Kind: agent.KindInvalid, Step: "files.landlock", Message: "the filter lets the agent mount, which Landlock would refuse",
			Hint: "use a filter that refuses mount, or omit the key"}
	}
	return nil
}

// domain is what the agent may do in its Landlock domain; nil: it is in none. how is the
// kernel's Landlock, empty where there is none; readable is the list of what may be read.
func domain(spec agent.Spec, plan rootfs.Plan, filter *specs.LinuxSeccomp, how string, readable []string) *landlock.Rules {
	if how == "" || mayMount(filter) {
		return nil
	}
	return &landlock.Rules{Files: fileRules(spec, plan, readable), NoTCP: !makesTCP(filter)}
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

// readRights are the rights where the agent may read, and changeRights what it may do beside that where it
// may change files.
const (
	readRights   = landlock.Read | landlock.Execute
	changeRights = landlock.Write | landlock.Make
)

// fileRules are what the mounts allow, as far as rules can say it: they only add up, so what
// is read-only inside of a writable place is not among them. With a list of what may be read,
// only its entries and the agent's own places are readable.
func fileRules(spec agent.Spec, plan rootfs.Plan, readable []string) []landlock.Rule {
	var rules []landlock.Rule
	add := func(path string, rights landlock.Right) {
		rules = append(rules, landlock.Rule{Path: path, Rights: rights})
	}
	if spec.Files.Read == nil {
		add("/", readRights)
	} else {
		for _, place := range slices.Concat(readable, spec.Files.OwnPlaces()) {
			add(place, readRights)
		}
	}
	for _, place := range plan.Writable() {
		add(place, changeRights)
	}
	// Devices are written through a read-only mount, too, and all nodes of /dev are harmless
	// ones. In /proc a process writes what is its own.
	add("/dev", landlock.Read|landlock.Write|landlock.Device)
	add("/proc", landlock.Read|landlock.Write)
	for _, m := range mounts(spec) {
		if (m.Type == "tmpfs" || m.Type == "mqueue") && !slices.Contains(m.Options, "ro") {
			add(m.Destination, readRights|changeRights)
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
	if err := l.checkKept(); err != nil {
		return err
	}
	l.ruleset, err = l.files.Make(func(path string) (*os.File, error) { return openInRoot(root, path, l.spec.Files.Read != nil) })
	if err != nil {
		return err
	}
	l.undo.Add("landlock rules", l.ruleset.Close)
	return nil
}

// openInRoot opens a path for a rule, as a process with that root would: links are resolved
// inside. With a list of what may be read there are none to resolve, and one that is there all
// the same allows nothing.
func openInRoot(root *os.File, path string, real bool) (*os.File, error) {
	how := unix.OpenHow{Flags: unix.O_PATH | unix.O_CLOEXEC, Resolve: unix.RESOLVE_IN_ROOT | unix.RESOLVE_NO_MAGICLINKS}
	if real {
		how.Resolve |= unix.RESOLVE_NO_SYMLINKS
	}
	fd, err := descriptor.Openat2(int(root.Fd()), path, &how)
	if real && errors.Is(err, unix.ELOOP) {
		return nil, fmt.Errorf("%s leads through a link: %w", path, fs.ErrNotExist)
	}
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), path), nil
}

// readable are the real paths of a run's list of what may be read.
func readable(spec agent.Spec, plan rootfs.Plan) ([]string, error) {
	if spec.Files.Read == nil {
		return nil, nil
	}
	paths, err := plan.Readable(spec.Files.Read, spec.Files.OwnPlaces())
	if list := (*rootfs.ListError)(nil); errors.As(err, &list) {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "--allow-read", Message: list.Error(), Hint: list.Hint}
	}
	if err == nil && (spec.Restart.Policy.Restarts() || spec.KeepFiles) {
		err = stays(plan, paths, "name the place as a whole, or keep no files from one start to the next")
	}
	return paths, err
}

// stays refuses what the agent could have put something else in the place of.
func stays(plan rootfs.Plan, paths []string, hint string) error {
	for _, at := range paths {
		if place := plan.Changing(at); place != "" {
			return &agent.Error{Kind: agent.KindInvalid, Step: "--allow-read", Hint: hint,
				Message: fmt.Sprintf("the agent changes what is in %s, and could put something else at %s for its next start", place, at)}
		}
	}
	return nil
}

// checkKept is stays for a run that goes on with the files of an earlier start.
func (l *launch) checkKept() error {
	if l.run.Layer == "" {
		return nil
	}
	return stays(l.plan, l.readable, "`clove restart --fresh` begins with a new layer; what the agent wrote is lost then")
}

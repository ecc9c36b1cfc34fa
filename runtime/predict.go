package runtime

import (
	"cmp"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/opencontainers/runc/libcontainer/specconv"
	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
	"clove.run/clove/seccomp"
)

// Prediction answers which access a run with a spec would have, without a run. It uses the
// code that builds the run, and reads nothing of this host.
type Prediction struct {
	spec    agent.Spec
	root    rootfs.Config
	profile *specs.LinuxSeccomp // nil: unconfined
}

// Predict prepares the answers for a spec, which need not name a command.
func Predict(spec agent.Spec) (*Prediction, error) {
	// The ID, the ids and the directories decide nothing here, but a root has some.
	spec.ID = cmp.Or(spec.ID, "0000000000000000")
	own, err := profile(spec)
	if err != nil {
		return nil, err
	}
	return &Prediction{spec: spec, root: rootConfig(DefaultPaths, spec, agent.IDsPerAgent), profile: own}, nil
}

// Access is what the file system lets an agent do at one path. Whether something exists
// there, and what a file's own permissions are, is not known.
type Access struct {
	Read, Write, Execute bool
	By                   string // the rule that decides
}

// File answers for an absolute path inside. A path with ".." is taken as a shell would.
func (f *Prediction) File(at string) (Access, error) {
	if !path.IsAbs(at) || strings.ContainsRune(at, 0) {
		return Access{}, &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("%q is not an absolute path", at), Hint: "write a path inside, such as /workspace"}
	}
	at = path.Clean(at)
	if m, ok := kernelMount(f.spec, at); ok {
		return f.listed(f.kernels(m, at), at), nil
	}
	seen, err := f.root.Look(at)
	a := Access{Read: seen.Readable, Write: seen.Writable, Execute: seen.Readable, By: seen.By}
	if files := f.spec.Files; files.Execute != nil && a.Execute {
		a.Execute = !a.Write && files.MayExecute(at)
	}
	return f.listed(a, at), err
}

// listed takes away what a list of what may be read leaves out. To execute is to read.
func (f *Prediction) listed(a Access, at string) Access {
	if a.Read && !f.spec.Files.MayRead(at) {
		a.Read, a.Execute = false, false
		a.By += ", and not in the list files.read"
	}
	return a
}

// kernelMount finds the innermost of the kernel's file systems that has the path in it.
func kernelMount(spec agent.Spec, at string) (found specs.Mount, ok bool) {
	for _, m := range mounts(spec) {
		if (at == m.Destination || strings.HasPrefix(at, m.Destination+"/")) && len(m.Destination) > len(found.Destination) {
			found, ok = m, true
		}
	}
	return found, ok
}

// kernels answers for what compile mounts. None of it can be executed.
func (f *Prediction) kernels(m specs.Mount, at string) Access {
	below := func(dir string) bool { return at == dir || strings.HasPrefix(at, dir+"/") }
	a := Access{Read: true, By: m.Destination + " of the kernel", Execute: !slices.Contains(m.Options, "noexec")}
	switch {
	case slices.ContainsFunc(maskedPaths, below):
		return Access{By: "hidden from every agent"}
	case slices.ContainsFunc(readonlyPaths, below):
		a.By += ", read-only for every agent"
	case m.Destination == "/proc":
		// The rest of it has permissions of its own; what counts is that a process may change
		// what is its own.
		a.Write = below("/proc/self") || below("/proc/thread-self")
	case m.Destination == "/dev":
		return f.device(at, a)
	case slices.Contains(m.Options, "ro"):
		a.By += ", read-only"
	default:
		a.Write = true
	}
	return a
}

// device answers for /dev itself. A device is written through a read-only /dev.
func (f *Prediction) device(at string, a Access) Access {
	if at == "/dev" {
		a.Write = f.spec.User.UID == 0 && f.spec.Files.StaysWritable("/dev")
		return a
	}
	known := func(d string) bool { return at == d || strings.HasPrefix(at, d+"/") }
	if slices.ContainsFunc(devLinks, known) {
		a.Write, a.By = true, "a link that every agent has"
		return a
	}
	for _, d := range specconv.AllowedDevices {
		if d.Path == at {
			a.Write, a.By = true, "a device that every agent has"
			return a
		}
	}
	return Access{By: "no such device appears inside"}
}

// devLinks are those that libcontainer makes (setupDevSymlinks, setupPtmx).
var devLinks = []string{"/dev/fd", "/dev/stdin", "/dev/stdout", "/dev/stderr", "/dev/ptmx"}

// Call reports whether the filters let a system call with these arguments through, and what
// decides. It fails for a name that no table has.
func (f *Prediction) Call(name string, args [6]uint64) (allowed bool, by string, err error) {
	explained, err := seccomp.ExplainProfile(f.profile, name)
	if slices.Contains(seccomp.Names(), f.spec.Seccomp.Profile) && err == nil {
		explained, err = seccomp.ExplainWithout(f.spec.Seccomp.Profile, name, narrower(f.spec))
	}
	if err != nil {
		return false, "", &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("there is no system call %.64q", name), Hint: "write the name that its manual page has, such as openat"}
	}
	d := seccomp.Decide(f.profile, name, args)
	by = "seccomp " + f.spec.Seccomp.Profile
	if !d.Allowed() {
		by += ": " + d.String()
		if explained.Verdict != seccomp.Allowed && explained.Reason != "" {
			by += ", " + explained.Reason
		}
	}
	return d.Allowed(), by, nil
}

// Errno is the error number with which a filter answers a call; 0 if it is carried out, or
// ends the process.
func (f *Prediction) Errno(name string, args [6]uint64) int {
	return int(seccomp.Decide(f.profile, name, args).Errno)
}

// CallNumber is a system call's number on this machine, or one that no machine has.
func CallNumber(name string) int32 {
	if number, exists := seccomp.Number(name); exists {
		return number
	}
	return noCall
}

// noCall is far above all numbers of calls, and answered with ENOSYS.
const noCall = 1 << 20

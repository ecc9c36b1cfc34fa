package main

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// readFiles reads what the agent's root is made of, but for the interpreter.
// Host paths become canonical here: what is checked is what will be mounted,
// unless somebody with root's rights swaps it, and rootfs looks again.
func (r *request) readFiles() error {
	for _, read := range []func() error{r.readRootfs, r.readWorkspace, r.readVolumes, r.readTmpfs, r.readMounts, r.checkTargets, r.readWorkdir} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// readRootfs: the tree may be hostile; rootfs resolves everything in it.
func (r *request) readRootfs() (err error) {
	if text := r.flags.String(flagRootfs); text != "" {
		r.spec.Files.Rootfs, err = r.directory(flagRootfs, text)
	}
	if r.spec.Files.Rootfs == "/" {
		return invalid(flagRootfs, "leave the flag away: the host's own system is the default", "/ is the whole host")
	}
	return err
}

// readWorkspace leaves the default, the script's directory, to findScript.
func (r *request) readWorkspace() (err error) {
	if text := r.flags.String(flagWorkspace); text != "" {
		if r.spec.Files.Workspace, err = r.directory(flagWorkspace, text); err == nil {
			err = checkWorkspace("--"+flagWorkspace, r.spec.Files.Workspace)
		}
	}
	return err
}

// directory resolves a directory of the host, symbolic links included.
func (r *request) directory(flag, text string) (string, error) {
	real, err := resolve("--"+flag, r.host.absolute(text), text)
	if err == nil && !isDirectory(real) {
		return "", invalid(flag, "name a directory", "%s is not a directory", text)
	}
	return real, err
}

// resolve returns the canonical path of a host file; shown is how the user
// wrote it.
func resolve(step, absolute, shown string) (string, error) {
	real, err := filepath.EvalSymlinks(absolute)
	switch {
	case err == nil:
		return real, nil
	case errors.Is(err, fs.ErrNotExist):
		return "", &agent.Error{Kind: agent.KindNotFound, Step: step, Message: shown + " does not exist", Hint: "check the path; it is one of the host's"}
	case isLoop(absolute):
		return "", &agent.Error{Kind: agent.KindInvalid, Step: step, Message: shown + " is a symbolic link that leads back to itself", Hint: "name the file itself"}
	}
	return "", &agent.Error{Kind: agent.KindInvalid, Step: step, Message: "cannot use " + shown, Hint: "check the path; it is one of the host's", Err: err}
}

// isLoop asks the kernel: EvalSymlinks has no error value for it.
func isLoop(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, unix.ELOOP)
}

// sharedDirs hold more than one agent's files: showing all of one because a
// script lies in it would show what nobody meant to show.
var sharedDirs = []string{"/", "/bin", "/boot", "/etc", "/home", "/lib", "/lib32", "/lib64", "/libx32", "/media", "/mnt",
	"/opt", "/root", "/run", "/sbin", "/srv", "/tmp", "/usr", "/usr/bin", "/usr/lib", "/usr/local", "/usr/local/bin",
	"/usr/sbin", "/usr/share", "/var", "/var/lib", "/var/tmp"}

// kernelDirs are the kernel's own file systems.
var kernelDirs = []string{"/proc", "/sys", "/dev"}

func inKernel(path string) bool {
	return slices.ContainsFunc(kernelDirs, func(dir string) bool { return within(path, dir) })
}

// checkWorkspace is rootfs's own rule, told before anything is made.
func checkWorkspace(step, dir string) error {
	if !slices.Contains(sharedDirs, dir) && !inKernel(dir) {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: dir + " cannot be the workspace: it is a directory of the system",
		Hint: "put the script into a directory of its own"}
}

// readVolumes reads docker's SOURCE:TARGET[:ro|rw].
func (r *request) readVolumes() error {
	for _, text := range r.flags.StringSlice(flagVolume) {
		bind, err := r.parseVolume(text)
		if err != nil {
			return err
		}
		r.spec.Files.Binds = append(r.spec.Files.Binds, bind)
	}
	return nil
}

// parseVolume refuses what docker would make up: named and anonymous volumes,
// and sources that do not exist.
func (r *request) parseVolume(text string) (bind agent.Bind, err error) {
	const form = "write SOURCE:TARGET or SOURCE:TARGET:ro"
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return bind, invalid(flagVolume, form, "%q is not a volume", text)
	}
	if len(parts) == 3 {
		for _, option := range strings.Split(parts[2], ",") {
			if option != "ro" && option != "rw" {
				return bind, invalid(flagVolume, form, "%q of %q is not an option", option, text)
			}
			bind.ReadOnly = option == "ro"
		}
	}
	if !strings.Contains(parts[0], "/") && !strings.HasPrefix(parts[0], ".") {
		return bind, invalid(flagVolume, "for a directory write ./"+parts[0]+":"+parts[1], "%q would be a named volume; clove has none", parts[0])
	}
	err = r.placeBind(flagVolume, parts[0], parts[1], &bind)
	return bind, err
}

// placeBind resolves both sides of a bind.
func (r *request) placeBind(flag, source, target string, bind *agent.Bind) (err error) {
	if bind.Source, err = resolve("--"+flag, r.host.absolute(source), source); err != nil {
		return err
	}
	if bind.Source == "/" || inKernel(bind.Source) {
		return invalid(flag, "name the directory that the agent needs", "%s is not shown to agents", bind.Source)
	}
	bind.Target, err = parseTarget(flag, target)
	return err
}

// parseTarget returns the canonical form of a path inside.
func parseTarget(flag, text string) (string, error) {
	const hint = "write an absolute path inside the sandbox, for example /data"
	target := path.Clean(text)
	switch {
	case !path.IsAbs(text):
		return "", invalid(flag, hint, "target %q is not an absolute path", text)
	case slices.Contains(strings.Split(text, "/"), ".."):
		return "", invalid(flag, hint, `target %q has ".." in it`, text)
	case target == "/":
		return "", invalid(flag, "to replace the whole root use --"+flagRootfs, "target / is the root itself")
	case inKernel(target):
		return "", invalid(flag, hint, "target %s is the kernel's own", target)
	}
	return target, nil
}

// readTmpfs reads docker's TARGET[:OPTIONS].
func (r *request) readTmpfs() error {
	for _, text := range r.flags.StringSlice(flagTmpfs) {
		target, options, _ := strings.Cut(text, ":")
		mount := agent.Tmpfs{}
		var err error
		if mount.Target, err = parseTarget(flagTmpfs, target); err != nil {
			return err
		}
		for _, option := range strings.FieldsFunc(options, func(c rune) bool { return c == ',' }) {
			if err := setTmpfsOption(flagTmpfs, &mount, option); err != nil {
				return err
			}
		}
		r.spec.Files.Tmpfs = append(r.spec.Files.Tmpfs, mount)
	}
	return nil
}

// setTmpfsOption refuses options that could not be held, such as noexec.
func setTmpfsOption(flag string, mount *agent.Tmpfs, option string) (err error) {
	key, value, _ := strings.Cut(option, "=")
	switch key {
	case "rw", "nosuid", "nodev": // they always hold
		return nil
	case "size":
		mount.SizeBytes, err = parseSize(flag, value, 4096)
		return err
	case "mode":
		mode, err := strconv.ParseUint(value, 8, 32)
		if err != nil || mode == 0 || mode > 0o1777 {
			return invalid(flag, "write an octal mode, for example mode=1777", "%q is not a mode", value)
		}
		mount.Mode = uint32(mode)
		return nil
	}
	return invalid(flag, "it takes size=SIZE and mode=MODE", "%q is not an option", option)
}

// checkTargets refuses two things at one place: the later would hide the
// earlier, and who asks for both is mistaken about one.
func (r *request) checkTargets() error {
	var seen []string
	for _, b := range r.spec.Files.Binds {
		seen = append(seen, b.Target)
	}
	for _, t := range r.spec.Files.Tmpfs {
		seen = append(seen, t.Target)
	}
	for i, target := range seen {
		if slices.Contains(seen[:i], target) {
			return invalid(flagVolume, "choose another target for one of them", "two things are to appear at %s", target)
		}
		if target == agent.WorkspaceDir && (r.script != "" || r.spec.Files.Workspace != "") {
			return invalid(flagVolume, "to show another directory there use --"+flagWorkspace, "the workspace already appears at %s", target)
		}
	}
	return nil
}

// readWorkdir: the directory need not exist here; clove-init finds out inside.
func (r *request) readWorkdir() error {
	text := r.flags.String(flagWorkdir)
	if text == "" {
		return nil
	}
	if !path.IsAbs(text) || slices.Contains(strings.Split(text, "/"), "..") {
		return invalid(flagWorkdir, "write an absolute path inside the sandbox, for example "+agent.WorkspaceDir, "%q is not an absolute path", text)
	}
	r.spec.Dir = path.Clean(text)
	return nil
}

package build

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
	"clove.run/clove/policies/host"
)

// readFiles reads what the agent's root is made of, except the interpreter. Host paths become
// canonical here, so that the checked path is the mounted one. Somebody with root's rights
// can still replace it before the start, so rootfs checks again.
func (b *builder) readFiles() error {
	for _, read := range []func() error{b.readRootfs, b.readWorkspace, b.readVolumes, b.readTmpfs, b.readMounts, b.readWritable, b.readExecute, b.readReadable, b.readLandlock, b.checkTargets, b.readWorkdir} {
		if err := read(); err != nil {
			return err
		}
	}
	return nil
}

// readRootfs takes any directory but /. The tree may be hostile: rootfs resolves everything
// in it without following links out of it.
func (b *builder) readRootfs() (err error) {
	if text := b.asked.Rootfs; text != "" {
		b.spec.Files.Rootfs, err = b.directory("rootfs", text)
	}
	if b.spec.Files.Rootfs == "/" {
		return invalid("rootfs", "omit the flag: the host's own system is the default", "/ is the whole host")
	}
	return err
}

// readWorkspace leaves the default, the script's directory, to findScript.
func (b *builder) readWorkspace() (err error) {
	if text := b.asked.Workspace; text != "" {
		if b.spec.Files.Workspace, err = b.directory("workspace", text); err == nil {
			err = checkWorkspace("--workspace", b.spec.Files.Workspace)
		}
	}
	return err
}

// directory returns the canonical path of a directory of the host.
func (b *builder) directory(flag, text string) (string, error) {
	real, err := resolve("--"+flag, b.host.Absolute(text), text)
	if err == nil && !host.IsDirectory(real) {
		return "", invalid(flag, "name a directory", "%s is not a directory", text)
	}
	return real, err
}

// resolve returns the canonical path of a host file; shown is how the user wrote it, for
// the error.
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

// isLoop asks the kernel, because EvalSymlinks has no error value for a loop of links.
func isLoop(path string) bool {
	_, err := os.Stat(path)
	return errors.Is(err, unix.ELOOP)
}

// checkWorkspace applies rootfs's own rule early, before anything is made. A directory that
// many programs or users share would show the agent what nobody meant to show.
func checkWorkspace(step, dir string) error {
	if !slices.Contains(host.SharedDirs, dir) && !host.InKernel(dir) {
		return nil
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: dir + " cannot be the workspace: it is a directory of the system",
		Hint: "put the script into a directory of its own"}
}

// readVolumes reads docker's SOURCE:TARGET[:ro|rw].
func (b *builder) readVolumes() error {
	for _, text := range b.asked.Volumes {
		bind, err := b.parseVolume(text)
		if err != nil {
			return err
		}
		b.spec.Files.Binds = append(b.spec.Files.Binds, bind)
	}
	return nil
}

// parseVolume refuses what docker would create: named and anonymous volumes, and sources
// that do not exist.
func (b *builder) parseVolume(text string) (bind agent.Bind, err error) {
	const form = "write SOURCE:TARGET or SOURCE:TARGET:ro"
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return bind, invalid("volume", form, "%q is not a volume", text)
	}
	if len(parts) == 3 {
		for _, option := range strings.Split(parts[2], ",") {
			if option != "ro" && option != "rw" {
				return bind, invalid("volume", form, "%q of %q is not an option", option, text)
			}
			bind.ReadOnly = option == "ro"
		}
	}
	// docker takes a word without a slash for the name of a volume, not of a directory.
	if !strings.Contains(parts[0], "/") && !strings.HasPrefix(parts[0], ".") {
		return bind, invalid("volume", "for a directory write ./"+parts[0]+":"+parts[1], "%q would be a named volume; clove has none", parts[0])
	}
	err = b.placeBind("volume", parts[0], parts[1], &bind)
	return bind, err
}

// placeBind resolves both sides of a bind. The source becomes canonical, the target stays a
// path inside, which this host cannot resolve.
func (b *builder) placeBind(flag, source, target string, bind *agent.Bind) (err error) {
	if bind.Source, err = resolve("--"+flag, b.host.Absolute(source), source); err != nil {
		return err
	}
	if bind.Source == "/" || host.InKernel(bind.Source) {
		return invalid(flag, "name the directory that the agent needs", "%s is not shown to agents", bind.Source)
	}
	bind.Target, err = parseTarget(flag, target)
	return err
}

// parseTarget returns the canonical form of a path inside. ".." is refused and not cleaned
// away: behind a link inside it would be another place than it reads.
func parseTarget(flag, text string) (string, error) {
	const hint = "write an absolute path inside the sandbox, for example /data"
	target := path.Clean(text)
	switch {
	case !path.IsAbs(text):
		return "", invalid(flag, hint, "target %q is not an absolute path", text)
	case slices.Contains(strings.Split(text, "/"), ".."):
		return "", invalid(flag, hint, `target %q has ".." in it`, text)
	case target == "/":
		return "", invalid(flag, "to replace the whole root use --rootfs", "target / is the root itself")
	case host.InKernel(target):
		return "", invalid(flag, hint, "target %s is the kernel's own", target)
	}
	return target, nil
}

// readTmpfs reads docker's TARGET[:OPTIONS].
func (b *builder) readTmpfs() error {
	for _, text := range b.asked.Tmpfs {
		target, options, _ := strings.Cut(text, ":")
		mount := agent.Tmpfs{}
		var err error
		if mount.Target, err = parseTarget("tmpfs", target); err != nil {
			return err
		}
		for _, option := range strings.FieldsFunc(options, func(c rune) bool { return c == ',' }) {
			if err := setTmpfsOption("tmpfs", &mount, option); err != nil {
				return err
			}
		}
		b.spec.Files.Tmpfs = append(b.spec.Files.Tmpfs, mount)
	}
	return nil
}

// setTmpfsOption refuses options that clove does not enforce, such as noexec.
func setTmpfsOption(flag string, mount *agent.Tmpfs, option string) (err error) {
	key, value, _ := strings.Cut(option, "=")
	switch key {
	case "rw", "nosuid", "nodev": // they always hold
		return nil
	case "size":
		// One page is the least that a tmpfs can have.
		mount.SizeBytes, err = ParseSize(flag, value, 4096)
		return err
	case "mode":
		// 0 stands for the default in a spec, and 1777 is the largest: no set-id bits.
		mode, err := strconv.ParseUint(value, 8, 32)
		if err != nil || mode == 0 || mode > 0o1777 {
			return invalid(flag, "write an octal mode, for example mode=1777", "%q is not a mode", value)
		}
		mount.Mode = uint32(mode)
		return nil
	}
	return invalid(flag, "it takes size=SIZE and mode=MODE", "%q is not an option", option)
}

// readWritable takes the list as it is: a place has one name.
func (b *builder) readWritable() error {
	b.spec.Files.Writable = b.asked.Writable
	return b.spec.Files.ValidateWritable()
}

// readExecute takes the list as it is: its paths are inside. One that stands twice, as in a
// policy and in a flag, means the same.
func (b *builder) readExecute() error {
	b.spec.Files.Execute = onceEach(b.asked.Execute)
	return ofFlag("--allow-exec", b.spec.ValidateExecute())
}

// readReadable is readExecute for what may be read.
func (b *builder) readReadable() error {
	b.spec.Files.Read = onceEach(b.asked.Read)
	return ofFlag("--allow-read", b.spec.ValidateRead())
}

// onceEach leaves out what stands twice. An absent list stays one.
func onceEach(list []string) []string {
	if list == nil {
		return nil
	}
	once := []string{}
	for _, entry := range list {
		if !slices.Contains(once, entry) {
			once = append(once, entry)
		}
	}
	return once
}

// ofFlag names the flag where an error names the field of a spec.
func ofFlag(flag string, err error) error {
	if known := (*agent.Error)(nil); errors.As(err, &known) {
		hint := strings.ReplaceAll(known.Hint, "add read_only", "add --read-only")
		return &agent.Error{Kind: known.Kind, Step: flag, Message: known.Message, Hint: hint}
	}
	return err
}

// readLandlock takes the word as it is.
func (b *builder) readLandlock() error {
	b.spec.Files.Landlock = b.asked.Landlock
	return b.spec.ValidateLandlock()
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
			return invalid("volume", "choose another target for one of them", "two mounts have the target %s", target)
		}
		if target == agent.WorkspaceDir && (b.asked.Script != "" || b.spec.Files.Workspace != "") {
			return invalid("volume", "to show another directory there use --workspace", "the workspace already appears at %s", target)
		}
	}
	return nil
}

// readWorkdir does not look for the directory, which need not exist here: clove-init finds
// out inside.
func (b *builder) readWorkdir() error {
	text := b.asked.Workdir
	if text == "" {
		return nil
	}
	if !path.IsAbs(text) || slices.Contains(strings.Split(text, "/"), "..") {
		return invalid("workdir", "write an absolute path inside the sandbox, for example "+agent.WorkspaceDir, "%q is not an absolute path", text)
	}
	b.spec.Dir = path.Clean(text)
	return nil
}

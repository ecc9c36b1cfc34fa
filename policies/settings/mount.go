package settings

import (
	"path"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// readVolume reads docker's SOURCE:TARGET[:ro|rw|z|Z].
func readVolume(r *Reader, text string) error {
	bind, err := r.parseVolume(text)
	if err == nil {
		r.Spec.Files.Binds = append(r.Spec.Files.Binds, bind)
	}
	return err
}

// parseVolume refuses what docker would create: named and anonymous volumes, and sources
// that do not exist.
func (r *Reader) parseVolume(text string) (bind agent.Bind, err error) {
	const form = "write SOURCE:TARGET or SOURCE:TARGET:ro"
	parts := strings.Split(text, ":")
	if len(parts) < 2 || len(parts) > 3 || parts[0] == "" || parts[1] == "" {
		return bind, Invalid(Volume, form, "%q is not a volume", text)
	}
	if len(parts) == 3 {
		for _, option := range strings.Split(parts[2], ",") {
			switch option {
			case "ro", "rw":
				bind.ReadOnly = option == "ro"
			case "z", "Z": // labels of SELinux, which no agent is confined by: there is nothing to change
			default:
				return bind, Invalid(Volume, form, "%q of %q is not an option", option, text)
			}
		}
	}
	// docker takes a text without a slash for the name of a volume, not of a directory.
	if !strings.Contains(parts[0], "/") && !strings.HasPrefix(parts[0], ".") {
		return bind, Invalid(Volume, "for a directory write ./"+parts[0]+":"+parts[1], "%q would be a named volume; clove has none", parts[0])
	}
	err = r.placeBind(Volume, parts[0], parts[1], &bind)
	return bind, err
}

// placeBind resolves both sides of a bind. The source becomes canonical, the target stays a
// path inside, which this host cannot resolve.
func (r *Reader) placeBind(flag, source, target string, bind *agent.Bind) (err error) {
	if bind.Source, err = host.Resolve("--"+flag, r.Host.Absolute(source), source); err != nil {
		return err
	}
	if bind.Source == "/" || host.InKernel(bind.Source) {
		return Invalid(flag, "name the directory that the agent needs", "%s is not shown to agents", bind.Source)
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
		return "", Invalid(flag, hint, "target %q is not an absolute path", text)
	case slices.Contains(strings.Split(text, "/"), ".."):
		return "", Invalid(flag, hint, `target %q has ".." in it`, text)
	case target == "/":
		return "", Invalid(flag, "to replace the whole root use --rootfs", "target / is the root itself")
	case host.InKernel(target):
		return "", Invalid(flag, hint, "target %s is the kernel's own", target)
	}
	return target, nil
}

// readTmpfs reads docker's TARGET[:OPTIONS].
func readTmpfs(r *Reader, text string) (err error) {
	target, options, _ := strings.Cut(text, ":")
	mount := agent.Tmpfs{}
	if mount.Target, err = parseTarget(Tmpfs, target); err != nil {
		return err
	}
	for _, option := range strings.FieldsFunc(options, func(c rune) bool { return c == ',' }) {
		if err := setTmpfsOption(Tmpfs, &mount, option); err != nil {
			return err
		}
	}
	r.Spec.Files.Tmpfs = append(r.Spec.Files.Tmpfs, mount)
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
			return Invalid(flag, "write an octal mode, for example mode=1777", "%q is not a mode", value)
		}
		mount.Mode = uint32(mode)
		return nil
	}
	return Invalid(flag, "it takes size=SIZE and mode=MODE", "%q is not an option", option)
}

// readMount reads docker's long form of -v and --tmpfs.
func readMount(r *Reader, text string) error {
	m := mountOptions{kind: "volume"} // docker's default
	for _, option := range strings.Split(text, ",") {
		if err := m.read(option); err != nil {
			return err
		}
	}
	return r.addMount(text, m)
}

// mountOptions is one parsed --mount.
type mountOptions struct {
	kind, source, target string
	readOnly             bool
	tmpfs                agent.Tmpfs
	ofTmpfs              bool // an option of a tmpfs was given
}

// read takes one key=value. Of two values for one key the last wins, as in docker.
func (m *mountOptions) read(option string) error {
	key, value, valued := strings.Cut(option, "=")
	switch {
	case key == "type":
		m.kind = value
	case key == "source" || key == "src":
		m.source = value
	case key == "target" || key == "destination" || key == "dst":
		m.target = value
	case (key == "readonly" || key == "ro") && (!valued || value == "true" || value == "1"):
		m.readOnly = true
	case (key == "readonly" || key == "ro") && (value == "false" || value == "0"):
		m.readOnly = false
	case key == "tmpfs-size" || key == "tmpfs-mode":
		m.ofTmpfs = true
		return setTmpfsOption(Mount, &m.tmpfs, strings.TrimPrefix(option, "tmpfs-"))
	default:
		return Invalid(Mount, "it takes type, source, target, readonly, and for a tmpfs tmpfs-size and tmpfs-mode", "%q is not an option", option)
	}
	return nil
}

// addMount checks the options together: which of them belong together depends on the type,
// which may come last.
func (r *Reader) addMount(text string, m mountOptions) (err error) {
	const form = "write type=bind,source=DIR,target=DIR, with ,readonly where nothing shall change, or type=tmpfs,target=DIR"
	switch {
	case m.kind == "volume":
		return Invalid(Mount, form, "%q would be a named volume; clove has none", text)
	case m.kind != "bind" && m.kind != "tmpfs":
		return Invalid(Mount, form, "there is no type %q", m.kind)
	case m.target == "" || (m.kind == "bind") != (m.source != "") || m.kind == "bind" && m.ofTmpfs || m.kind == "tmpfs" && m.readOnly:
		return Invalid(Mount, form, "%q is not a mount", text)
	case m.kind == "bind":
		bind := agent.Bind{ReadOnly: m.readOnly}
		err = r.placeBind(Mount, m.source, m.target, &bind)
		r.Spec.Files.Binds = append(r.Spec.Files.Binds, bind)
		return err
	}
	m.tmpfs.Target, err = parseTarget(Mount, m.target)
	r.Spec.Files.Tmpfs = append(r.Spec.Files.Tmpfs, m.tmpfs)
	return err
}

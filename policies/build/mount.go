package build

import (
	"strings"

	"clove.run/clove/agent"
)

// readMounts reads docker's long form of -v and --tmpfs.
func (b *builder) readMounts() error {
	for _, text := range b.asked.Mounts {
		m := mountWords{kind: "volume"} // docker's default
		for _, word := range strings.Split(text, ",") {
			if err := m.read(word); err != nil {
				return err
			}
		}
		if err := b.addMount(text, m); err != nil {
			return err
		}
	}
	return nil
}

// mountWords is one parsed --mount.
type mountWords struct {
	kind, source, target string
	readOnly             bool
	tmpfs                agent.Tmpfs
	ofTmpfs              bool // an option of a tmpfs was given
}

// read takes one key=value. Of two values for one key the last wins, as in docker.
func (m *mountWords) read(word string) error {
	key, value, valued := strings.Cut(word, "=")
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
		return setTmpfsOption("mount", &m.tmpfs, strings.TrimPrefix(word, "tmpfs-"))
	default:
		return invalid("mount", "it takes type, source, target, readonly, and for a tmpfs tmpfs-size and tmpfs-mode", "%q is not an option", word)
	}
	return nil
}

// addMount checks the words together: which of them belong together depends on the type,
// which may come last.
func (b *builder) addMount(text string, m mountWords) (err error) {
	const form = "write type=bind,source=DIR,target=DIR, with ,readonly where nothing shall change, or type=tmpfs,target=DIR"
	switch {
	case m.kind == "volume":
		return invalid("mount", form, "%q would be a named volume; clove has none", text)
	case m.kind != "bind" && m.kind != "tmpfs":
		return invalid("mount", form, "there is no type %q", m.kind)
	case m.target == "" || (m.kind == "bind") != (m.source != "") || m.kind == "bind" && m.ofTmpfs || m.kind == "tmpfs" && m.readOnly:
		return invalid("mount", form, "%q is not a mount", text)
	case m.kind == "bind":
		bind := agent.Bind{ReadOnly: m.readOnly}
		err = b.placeBind("mount", m.source, m.target, &bind)
		b.spec.Files.Binds = append(b.spec.Files.Binds, bind)
		return err
	}
	m.tmpfs.Target, err = parseTarget("mount", m.target)
	b.spec.Files.Tmpfs = append(b.spec.Files.Tmpfs, m.tmpfs)
	return err
}

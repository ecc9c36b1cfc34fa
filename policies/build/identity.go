package build

import (
	"path/filepath"
	"strconv"
	"strings"

	"clove.run/clove/agent"
)

// readIdentity reads names: the run's, the user's, the host's and the labels.
func (b *builder) readIdentity() (err error) {
	if b.spec.Name = b.asked.Name; b.spec.Name != "" {
		if err := agent.ValidateName(b.spec.Name); err != nil {
			return err
		}
	}
	if text := b.asked.User; text != "" {
		if b.spec.User, err = ParseUser(text); err != nil {
			return err
		}
	}
	if b.spec.Hostname = b.asked.Hostname; b.spec.Hostname != "" && !agent.IsHostname(b.spec.Hostname) {
		return invalid("hostname", "use 1 to 63 letters, digits and '-', in parts that are joined by '.'", "%q is not a host name", b.spec.Hostname)
	}
	b.spec.ClockStart = b.asked.ClockStart
	return b.readLabels()
}

// readLabels keeps the last of two labels with one key, as -e does. Characters that do not
// print are refused, because listings show labels on terminals.
func (b *builder) readLabels() error {
	for _, text := range b.asked.Labels {
		key, value, valued := strings.Cut(text, "=")
		if key == "" || strings.ContainsFunc(text, func(c rune) bool { return !strconv.IsPrint(c) }) {
			return invalid("label", "write KEY=VALUE", "%q is not a label", text)
		}
		if !valued {
			return invalid("label", "write "+key+"=VALUE, or "+key+"= for a label without a value", "%q has no value", text)
		}
		if b.spec.Labels == nil {
			b.spec.Labels = map[string]string{}
		}
		b.spec.Labels[key] = value
	}
	return nil
}

// Stem is the script's or program's name without its ending, with - for every character
// that a run's name may not have. A name begins with a letter or digit, so other characters
// are removed from its beginning.
func (r Request) Stem() string {
	stem := r.Script
	if stem == "" {
		stem = r.Args[0]
	}
	stem = filepath.Base(stem)
	stem = strings.TrimSuffix(stem, filepath.Ext(stem))
	stem = strings.Map(func(c rune) rune {
		if agent.ValidateName("x"+string(c)) != nil {
			return '-'
		}
		return c
	}, stem)
	stem = strings.TrimLeft(stem, "-._")
	if stem == "" {
		stem = "run"
	}
	return stem
}

// nameRun gives a run without --name the script's or program's name and the first digits of
// its ID, which make it unique. 40 bytes of the stem, a dash and 8 digits fit into the 63
// bytes of a name.
func (b *builder) nameRun() error {
	if b.spec.Name != "" {
		return nil
	}
	stem := b.asked.Stem()
	b.spec.Name = stem[:min(len(stem), 40)] + "-" + string(b.spec.ID)[:8]
	return agent.ValidateName(b.spec.Name)
}

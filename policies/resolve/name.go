package resolve

import (
	"path/filepath"
	"strings"

	"clove.run/clove/agent"
)

// Stem is the manifest's name, or the script's or program's name without its ending, with - for every character
// that a run's name may not have. A name begins with a letter or digit, so other characters
// are removed from its beginning.
func (r Request) Stem() string {
	stem := r.Script
	if r.Manifest.Name != "" {
		return r.Manifest.Name
	}
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

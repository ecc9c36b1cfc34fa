package settings

import (
	"cmp"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies/host"
)

// Reader reads values into a spec.
type Reader struct {
	Values        // what was asked for, over the policy's
	Policy Policy // the policy's own, for settings that are Apart
	Host   host.Host
	Image  bool // the root is an image's, of which this host knows nothing
	Spec   *agent.Spec
}

// Policy is what was asked for by a policy.
type Policy struct {
	Name string
	Values
}

// Read reads a section, in the order of its rows. It stops at the first mistake: those behind
// it may be consequences.
func (r *Reader) Read(s Section) error {
	for i := range s.Rows {
		row := &s.Rows[i]
		if texts, has := r.Values[row.Name()]; has && row.Read != nil {
			if err := row.Read(r, texts); err != nil {
				return err
			}
		}
	}
	if s.After != nil {
		return s.After(r)
	}
	return nil
}

// one reads a setting that has one text.
func one(read func(r *Reader, text string) error) func(*Reader, []string) error {
	return func(r *Reader, texts []string) error {
		if len(texts) == 0 {
			return nil
		}
		return read(r, texts[len(texts)-1])
	}
}

// each reads a setting text by text.
func each(read func(r *Reader, text string) error) func(*Reader, []string) error {
	return func(r *Reader, texts []string) error {
		for _, text := range texts {
			if err := read(r, text); err != nil {
				return err
			}
		}
		return nil
	}
}

// text takes one text as it is.
func text(at func(*agent.Spec) *string) func(*Reader, []string) error {
	return one(func(r *Reader, text string) error { *at(r.Spec) = text; return nil })
}

// yes sets a switch.
func yes(at func(*agent.Spec) *bool) func(*Reader, []string) error {
	return one(func(r *Reader, text string) error { *at(r.Spec) = text == "true"; return nil })
}

// texts writes one text; an empty one is none.
func texts(text string) []string {
	if text == "" {
		return nil
	}
	return []string{text}
}

// more is a difference if it is one.
func more(is bool, from, to string) []Difference {
	if !is {
		return nil
	}
	return []Difference{{From: from, To: to}}
}

// beyond is what wide lists and base does not have.
func beyond(base, wide []string, has func([]string, string) bool) []Difference {
	extra := slices.DeleteFunc(slices.Clone(wide), func(item string) bool { return has(base, item) })
	return more(len(extra) > 0, cmp.Or(list(base), "none"), list(extra))
}

func list(items []string) string { return strings.Join(items, ", ") }

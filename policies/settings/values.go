package settings

import (
	"maps"
	"slices"
	"strings"
)

// Values are texts by the names of settings. A list that is absent is not the same as an empty
// one.
type Values map[string][]string

// Text is a setting's only text; empty: it is absent.
func (v Values) Text(name string) string {
	if texts := v[name]; len(texts) > 0 {
		return texts[len(texts)-1]
	}
	return ""
}

// Has reports whether a setting is present.
func (v Values) Has(name string) bool { _, has := v[name]; return has }

// Set sets one text. The empty text removes the setting.
func (v *Values) Set(name, text string) {
	if text == "" {
		delete(*v, name)
		return
	}
	v.SetList(name, []string{text})
}

// SetList sets all texts. A nil list removes the setting.
func (v *Values) SetList(name string, texts []string) {
	if texts == nil {
		delete(*v, name)
		return
	}
	if *v == nil {
		*v = Values{}
	}
	(*v)[name] = texts
}

// Add adds texts behind those that are there. Lists of a copy of v do not change.
func (v *Values) Add(name string, texts ...string) {
	if len(texts) > 0 {
		v.SetList(name, slices.Concat((*v)[name], texts))
	}
}

// Named is the text of NAME=TEXT in a list of such texts.
func Named(list []string, name string) (text string, found bool) {
	for _, entry := range list {
		if after, is := strings.CutPrefix(entry, name+"="); is {
			text, found = after, true
		}
	}
	return text, found
}

// Merge is how a value and the one below it become one.
type Merge int

// The ways.
const (
	Replace Merge = iota
	Join          // the texts below come first
	Union         // the same, each text once
	ByName        // of NAME=TEXT, the own ones and those below with other names
	Apart         // the text below is not taken over: the Reader has both
)

// Ask lays what a command line asks for over a policy's values.
func (v Values) Ask(policy Values) Values {
	return v.over(policy, func(s *Setting) Merge { return s.Flags })
}

// Extend lays a document's values over those of the document that it extends.
func (v Values) Extend(base Values) Values {
	return v.over(base, func(s *Setting) Merge { return s.Extends })
}

func (v Values) over(below Values, how func(*Setting) Merge) Values {
	all := Values{}
	maps.Copy(all, below)
	for i := range All() {
		if s := &All()[i]; s.Drops != nil && v.Has(s.Name()) {
			for _, name := range s.Drops(v.Text(s.Name())) {
				delete(all, name)
			}
		}
	}
	for i := range All() {
		s := &All()[i]
		name := s.Name()
		switch own, has := v[name]; {
		case how(s) == Apart:
			all.SetList(name, own)
		case has:
			all[name] = merged(how(s), all[name], own)
			if s.Form == Map || s.Form == Amounts {
				slices.Sort(all[name])
			}
		}
	}
	return all
}

func merged(how Merge, below, own []string) []string {
	all := slices.Clone(below)
	switch how {
	case Join:
		return append(all, own...)
	case Union:
		return onceEach(append(all, own...))
	case ByName:
		all = slices.DeleteFunc(all, func(entry string) bool {
			name, _, _ := strings.Cut(entry, "=")
			_, named := Named(own, name)
			return named
		})
		return append(slices.Clone(own), all...)
	}
	return own
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

package settings

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"clove.run/clove/agent"
)

// Setting is one row. The zero value of a field means that the setting has no such thing.
type Setting struct {
	Flag    string                  // of the command line, without dashes
	Short   string                  // its letter
	On      string                  // the text that the flag stands for by itself: it takes no value
	Group   string                  // heading in the help of run, one of the Group constants
	Usage   string                  // the flag in the help
	Default string                  // in the help, in words; empty: Say of the standard level
	Say     func(agent.Spec) string // the value in words
	Pod     string                  // what to do in a cluster, where the flag is refused; empty: a Job has it

	Key      string // in documents: limits.memory
	Manifest string // the key in manifests of a setting that is no policy's: restart
	Form     Form   // of its value
	Doc      string // the key in the schema; empty: Usage
	Enum     string // its only values, with | between them

	Flags   Merge                      // a flag over a document's value
	Extends Merge                      // a document's value over that of the extended one
	Drops   func(text string) []string // names of settings below that have no meaning beside this value

	Read  func(r *Reader, texts []string) error    // checks texts and enters them into the spec
	Write func(agent.Spec) []string                // as a document has it; nil: what a run was given does not say it
	Wider func(base, wide agent.Spec) []Difference // where wide allows more; without a place it is Key
	Learn *Learn                                   // how a limit follows from a peak
	Live  *Live                                    // how it is changed while the run lives; nil: it is not
}

// Form is what a value is in documents and on the command line.
type Form int

// The forms.
const (
	String  Form = iota // one text
	Amount              // one text, which documents may write as a number
	List                // texts
	Ports               // numbers from 0 to 65535
	Switch              // true or false
	Map                 // NAME=TEXT, a map in documents
	Amounts             // NAME=TEXT, a map of amounts in documents
)

// Many reports whether the flag may be repeated.
func (s *Setting) Many() bool {
	return s.Form == List || s.Form == Ports || s.Form == Map || s.Form == Amounts
}

// Name is the setting in Values: its flag, or its key where it has none.
func (s *Setting) Name() string {
	if s.Flag != "" {
		return s.Flag
	}
	return s.Key
}

// ManifestKey is the key in manifests, which have all keys of policies.
func (s *Setting) ManifestKey() string { return cmp.Or(s.Key, s.Manifest) }

// The headings of clove run --help.
const (
	GroupLimits   = "limits"
	GroupFiles    = "files"
	GroupIdentity = "identity and environment"
	GroupNetwork  = "network"
	GroupWalls    = "walls"
	GroupShared   = "grants and budgets"
	GroupDetached = "with cloved"
	GroupResult   = "input and result"
)

// Section is rows that are read together. After checks them, also where none has a text.
type Section struct {
	Rows  []Setting
	After func(*Reader) error
}

// All is every row, in the order of a document's keys. It is made at its first use, as the sections
// are: each launch starts clove once more, which needs none of them.
var All = sync.OnceValue(func() []Setting {
	return slices.Concat(Limits().Rows, Ulimits().Rows, Files().Rows, Identity().Rows, Privileges().Rows, Filter().Rows, Environment().Rows,
		Network().Rows, Hosts().Rows, Shared().Rows, Detached().Rows, Result().Rows, Weaken().Rows)
})

// Find returns the row with a flag or a key, also one of manifests; nil: there is none.
func Find(name string) *Setting {
	for i := range All() {
		if s := &All()[i]; name != "" && (s.Flag == name || s.ManifestKey() == name) {
			return s
		}
	}
	return nil
}

// Groups are the keys of documents that hold others, with their description.
var Groups = map[string]string{
	"limits":       "limits of all processes of the agent together",
	"files":        "what of the host appears inside, and what may be written",
	"capabilities": "capabilities of root inside",
	"environment":  "variables; nothing else of the caller's is inherited",
	"network":      "what the agent reaches",
}

// Difference is one place in which the second of two specs allows more.
type Difference struct {
	Place string `json:"place"` // key of a policy document, as limits.memory
	From  string `json:"from"`  // what the first has, in words
	To    string `json:"to"`    // what the second has
}

// String is the difference in words.
func (d Difference) String() string {
	return fmt.Sprintf("%s: %s instead of %s", d.Place, d.To, d.From)
}

// Wider returns where wide allows more than base, in the order of a document's keys. Both are
// valid; a value that cannot be parsed counts as more.
func Wider(base, wide agent.Spec) (all []Difference) {
	for i := range All() {
		if All()[i].Wider == nil {
			continue
		}
		for _, d := range All()[i].Wider(base, wide) {
			if d.Place == "" {
				d.Place = All()[i].Key
			}
			all = append(all, d)
		}
	}
	return all
}

// Given is what a spec allows, as a document says it.
func Given(spec agent.Spec) Values {
	v := Values{}
	for i := range All() {
		if All()[i].Write != nil {
			v.SetList(All()[i].Name(), All()[i].Write(spec))
		}
	}
	return v
}

// Invalid is a mistake in what was asked for. flag is the flag's name without dashes, or empty.
func Invalid(flag, hint, format string, values ...any) error {
	if flag != "" {
		flag = "--" + flag
	}
	return &agent.Error{Kind: agent.KindInvalid, Step: flag, Message: fmt.Sprintf(format, values...), Hint: hint}
}

// mistake is a mistake in a flag that another package found.
func mistake(flag string, err error) error {
	f := agent.FailureOf(err)
	return Invalid(flag, f.Hint, "%s", f.Message)
}

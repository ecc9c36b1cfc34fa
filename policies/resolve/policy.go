package resolve

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/settings"
	"clove.run/clove/seccomp"
)

// Policy is a document with all that it extends.
type Policy struct {
	Document policies.Document // merged: every value that any of Chain has
	Chain    []Link            // the document itself first, then what it extends
	Spec     agent.Spec        // the defaults; it has no command, no ID and no environment
}

// Link is one document of a chain.
type Link struct {
	Name    string     `json:"name"`
	Source  string     `json:"source"` // the file, or "built in"
	Widened []Widening `json:"widened,omitempty"`

	asWritten policies.Document
	written   policies.Document // with absolute paths
}

// Widening is a place in which a document allows more than what it extends.
type Widening struct {
	settings.Difference
	Reason string `json:"reason"`
}

// builtIn is the source of levels.
const builtIn = "built in"

// mostExtends bounds a chain of documents.
const mostExtends = 16

// LoadPolicy finds a policy and all that it extends, by a level's name, the path of a file
// (a text with a slash or an ending of YAML), or a name, which is looked for as NAME.yaml in
// Host.Policies. It fails where a document is wider than what it extends without a reason.
// An error names the file.
func LoadPolicy(reference string, h host.Host) (*Policy, error) {
	chain, err := loadChain(reference, h)
	if err != nil {
		return nil, err
	}
	return layOver(chain, h)
}

// Extended resolves a document that is in no file: the defaults of what it extends, and those
// that it sets itself. It does not ask for reasons.
func Extended(d policies.Document, h host.Host) (parent, own agent.Spec, err error) {
	reference := d.Extends
	if reference == "" {
		reference = policies.StandardName
	}
	base, err := LoadPolicy(reference, h)
	if err != nil {
		return parent, own, err
	}
	own, err = specOf(absolute(d, h.Dir).Over(base.Document), h)
	if err != nil {
		err = asDocument(err)
	}
	return base.Spec, own, err
}

// loadChain reads the documents, the one that was asked for first.
func loadChain(reference string, h host.Host) (chain []Link, err error) {
	for from := h; ; {
		link, dir, err := findPolicy(reference, from)
		if err != nil {
			if len(chain) > 0 {
				err = ofPolicy(chain[len(chain)-1], "extends", err)
			}
			return nil, err
		}
		if slices.ContainsFunc(chain, func(l Link) bool { return l.Source == link.Source && l.Name == link.Name }) {
			return nil, ofPolicy(chain[len(chain)-1], "extends", invalid("", "extend a level instead", "%s extends itself", link.Name))
		}
		chain = append(chain, link)
		reference = link.written.Extends
		switch {
		case len(chain) > mostExtends:
			return nil, ofPolicy(link, "extends", invalid("", "merge some of them into one", "more than %d documents extend one another", mostExtends))
		case reference == "" && link.Source == builtIn && link.Name == policies.StandardName:
			return chain, nil
		case reference == "":
			reference = policies.StandardName
		}
		from.Dir = dir // of a relative path
		// A name is first looked for beside the document: a user's own documents replace no
		// part of the host's.
		if link.Source != builtIn {
			from.Policies = append([]string{dir}, h.Policies...)
		}
	}
}

// findPolicy reads one document; dir is where its relative paths begin.
func findPolicy(reference string, h host.Host) (link Link, dir string, err error) {
	if text, ok := policies.Level(reference); ok {
		written, err := policies.Parse(text)
		return Link{Name: reference, Source: builtIn, asWritten: written, written: written}, h.Dir, err
	}
	path, text, err := readPolicy(reference, h)
	if err != nil {
		return Link{}, "", err
	}
	written, err := policies.Parse(text)
	if err == nil && slices.Contains(policies.Levels, written.Name) {
		err = invalid("", "choose another name", "name: %s is a level of clove's own", written.Name)
	}
	if err != nil {
		return Link{}, "", ofPolicy(Link{Source: path}, "", err)
	}
	dir = filepath.Dir(path)
	return Link{Name: written.Name, Source: path, asWritten: written, written: absolute(written, dir)}, dir, nil
}

// absolute makes paths of the host absolute: they begin at the document.
func absolute(d policies.Document, dir string) policies.Document {
	d.Values = absoluteValues(d.Values, dir)
	return d
}

// isFilterName reports whether a text names a filter of clove's own, and no file.
func isFilterName(text string) bool { return text == "" || slices.Contains(seccomp.Names(), text) }

// endings of documents.
var policyEndings = []string{".yaml", ".yml"}

func readPolicy(reference string, h host.Host) (path string, text []byte, err error) {
	if strings.Contains(reference, "/") || slices.Contains(policyEndings, filepath.Ext(reference)) {
		path = h.Absolute(reference)
		text, err = host.ReadBounded(path, policies.MostBytes)
		if err != nil {
			err = &agent.Error{Kind: agent.KindInvalid, Step: "--policy", Message: fmt.Sprintf("cannot read the policy %q", reference),
				Hint: "clove policy list shows those that have a name", Err: err}
		}
		return path, text, err
	}
	if agent.ValidateName(reference) == nil {
		for _, dir := range h.Policies {
			path = filepath.Join(dir, reference+policyEndings[0])
			text, err = host.ReadBounded(path, policies.MostBytes)
			if errors.Is(err, fs.ErrNotExist) {
				continue
			}
			if err != nil {
				err = &agent.Error{Kind: agent.KindInvalid, Step: "--policy", Message: "cannot read a policy", Err: err}
			} else if d, derr := policies.Parse(text); derr == nil && d.Name != reference {
				err = invalid("policy", "rename the file, or write name: "+reference, "%s has the name %s", path, d.Name)
			}
			return path, text, err
		}
	}
	return "", nil, invalid("policy", policyHint(reference, h), "there is no policy %.64q", reference)
}

// policyHint names what was probably meant.
func policyHint(reference string, h host.Host) string {
	names := slices.Clone(policies.Levels)
	for _, found := range Policies(h) {
		names = append(names, found.Name)
	}
	return policies.Meant(reference, names, "the levels are "+strings.Join(policies.Levels, ", ")+"; clove policy list shows all; a file is named by its path")
}

// FoundPolicy is a document that has a name on this host.
type FoundPolicy struct {
	Name        string `json:"name" col:"NAME"`
	Source      string `json:"source" col:"FROM"`
	Description string `json:"description,omitempty" col:"DESCRIPTION"`
	Error       string `json:"error,omitempty" col:"DESCRIPTION,unusable"` // why it cannot be used
}

// Policies lists the levels and the documents of Host.Policies. A name that an earlier
// directory has hides that of a later one, which is left out. The ceiling of the host is no
// policy of a run.
func Policies(h host.Host) []FoundPolicy {
	var all []FoundPolicy
	for _, name := range policies.Levels {
		text, _ := policies.Level(name)
		written, err := policies.Parse(text)
		all = append(all, found(name, builtIn, written, err))
	}
	for _, dir := range h.Policies {
		files, _ := filepath.Glob(filepath.Join(dir, "*"+policyEndings[0])) // the pattern is sound
		for _, path := range files {
			name := strings.TrimSuffix(filepath.Base(path), policyEndings[0])
			if name == ceilingName || slices.ContainsFunc(all, func(f FoundPolicy) bool { return f.Name == name }) {
				continue
			}
			link, _, err := findPolicy(name, host.Host{Dir: h.Dir, Policies: []string{dir}})
			all = append(all, found(name, path, link.written, err))
		}
	}
	return all
}

func found(name, source string, written policies.Document, err error) FoundPolicy {
	f := FoundPolicy{Name: name, Source: source, Description: written.Description}
	if err != nil {
		f.Error = agent.FailureOf(err).Message
	}
	return f
}

// layOver lays the documents over each other, from the last of the chain to the first, and
// checks each step.
func layOver(chain []Link, h host.Host) (*Policy, error) {
	p := &Policy{Chain: chain}
	for i, link := range slices.Backward(chain) {
		merged := link.written
		if i < len(chain)-1 {
			merged = merged.Over(p.Document)
		}
		spec, err := specOf(merged, h)
		if err != nil {
			return nil, ofPolicy(link, "", asDocument(err))
		}
		if i < len(chain)-1 {
			more := settings.Wider(p.Spec, spec)
			if passed := added(p.Document.Values[settings.EnvironmentPass], link.written.Values[settings.EnvironmentPass]); len(passed) > 0 {
				more = append(more, settings.Difference{Place: "environment.pass", From: "none of the caller's", To: strings.Join(passed, ", ")})
			}
			if chain[i].Widened, err = widened(link, chain[i+1].Name, more); err != nil {
				return nil, err
			}
		}
		p.Document, p.Spec = merged, spec
	}
	p.Spec.Policy = p.label()
	return p, nil
}

// widened refuses what is wider without a reason.
func widened(link Link, parent string, more []settings.Difference) (all []Widening, err error) {
	for _, difference := range more {
		reason := link.written.Reason(difference.Place)
		if reason == "" {
			return nil, ofPolicy(link, "", &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("it allows more than %s, which it extends: %s", parent, difference),
				Hint: fmt.Sprintf("write it narrower, or say why with widen: {%s: REASON}", difference.Place)})
		}
		all = append(all, Widening{difference, reason})
	}
	return all, nil
}

// added are the words that only the second list has.
func added(base, more []string) []string {
	return slices.DeleteFunc(slices.Clone(more), func(word string) bool { return slices.Contains(base, word) })
}

// label is what a record says of the policy. The standard level keeps the digest that it has
// had without documents.
func (p *Policy) label() agent.Policy {
	if len(p.Chain) == 1 && p.Chain[0].Source == builtIn {
		return policies.Standard().Policy
	}
	variables := struct {
		Set  map[string]string `json:"set,omitempty"`
		Pass []string          `json:"pass,omitempty"`
	}{map[string]string{}, p.Document.Values[settings.EnvironmentPass]}
	for _, entry := range p.Document.Values[settings.EnvironmentSet] {
		name, value, _ := strings.Cut(entry, "=")
		variables.Set[name] = value
	}
	text, err := json.Marshal(struct {
		Spec        agent.Spec
		Environment any
	}{p.Spec, variables})
	if err != nil {
		panic(err) // values of this package's own making always encode
	}
	sum := sha256.Sum256(text)
	label := agent.Policy{Name: p.Document.Name, SHA256: hex.EncodeToString(sum[:])}
	for _, link := range p.Chain {
		for _, w := range link.Widened {
			label.Widened = append(label.Widened, w.Place+" ("+link.Name+"): "+w.Reason)
		}
	}
	return label
}

// ofPolicy says in which document a mistake is.
func ofPolicy(link Link, at string, err error) error {
	where := link.Source
	if where == builtIn {
		where = link.Name
	}
	if at != "" {
		where += ": " + at
	}
	f := agent.FailureOf(err)
	return &agent.Error{Kind: agent.KindOf(err), Step: "--policy", Message: where + ": " + f.Message, Hint: f.Hint}
}

// asDocument names the key of a document where an error names a flag.
func asDocument(err error) error {
	f := agent.FailureOf(err)
	message := f.Message
	if s := settings.Find(strings.TrimPrefix(f.Step, "--")); s != nil && s.ManifestKey() != "" {
		// The mode of the network and its rules are checked together.
		message = strings.TrimSuffix(s.ManifestKey(), ".mode") + ": " + message
	}
	hint := strings.NewReplacer("omit the flag for no limit", "write a longer time", "omit the flag", "omit the key", "add read_only", "write files.root: read-only", "add --read-only", "write files.root: read-only", "--", "").Replace(f.Hint)
	return &agent.Error{Kind: agent.KindOf(err), Message: message, Hint: hint}
}

// specOf builds the defaults that a merged document sets.
func specOf(d policies.Document, h host.Host) (agent.Spec, error) {
	b := &builder{asked: Request{Values: settings.Values{}.Ask(d.Values)}, policy: settings.Policy{Name: d.Name, Values: d.Values}, host: h, spec: policies.Standard()}
	spec, err := b.build(policySteps)
	if err == nil {
		err = b.eachVariable(func(string, string, string, bool) error { return nil })
	}
	spec.Policy = agent.Policy{}
	return spec, err
}

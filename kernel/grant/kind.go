package grant

import (
	"slices"
	"strings"
)

// Kind is what a grant is for.
type Kind string

// The kinds.
const (
	Tool   Kind = "tool"   // call a tool
	Model  Kind = "model"  // call a model
	Net    Kind = "net"    // connect, as --allow permits it
	File   Kind = "file"   // read or write files, or read those that another run keeps
	Spawn  Kind = "spawn"  // start an agent
	Send   Kind = "send"   // send to a mailbox or topic
	Name   Kind = "name"   // have a name, or subscribe to a topic
	State  Kind = "state"  // read or write shared state
	Secret Kind = "secret" // use a secret
	Audit  Kind = "audit"  // read a namespace's audit log
	Taint  Kind = "taint"  // remove a taint
)

// Rights are what may be done within a pattern. Only file, state and model have them.
type Rights string

// The rights. ReadWrite covers ReadOnly. For a model NoRights is to call it, which each
// other right includes; none of the others includes another.
const (
	NoRights      Rights = ""
	ReadOnly      Rights = "ro"
	ReadWrite     Rights = "rw"
	ProviderTools Rights = "provider-tools" // the provider reaches the network or runs code
	ProviderState Rights = "provider-state" // the provider keeps what the agent sent
)

var (
	pathRights  = []Rights{ReadOnly, ReadWrite}
	modelRights = []Rights{NoRights, ProviderTools, ProviderState}
)

// grammar is how a kind reads and compares patterns.
type grammar struct {
	kind    Kind
	example string // a whole scope, for hints
	// parse returns the canonical pattern of s, and may set what covers needs.
	parse func(s *Scope, pattern string) (string, *refusal)
	// covers compares patterns of this kind; kind and rights are compared before.
	covers func(wide, narrow Scope) bool
	rights []Rights // the narrowest first; nil: the kind has none
	// concrete reports whether the pattern means one thing. nil: each does.
	concrete func(Scope) bool
}

var grammars = []grammar{
	{kind: Tool, example: "tool:fetch", parse: parseGlob, covers: toolCovers, concrete: noStar},
	{kind: Model, example: "model:claude-*", parse: parseModel, covers: globCovers, rights: modelRights, concrete: noStar},
	{kind: Net, example: "net:api.example.com:443", parse: parseNet, covers: netCovers, concrete: oneEndpoint},
	{kind: File, example: "file:/data:ro", parse: parseFile, covers: fileCovers, rights: pathRights},
	{kind: Spawn, example: "spawn:worker-*", parse: parseGlob, covers: globCovers, concrete: noStar},
	{kind: Send, example: "send:critic", parse: parseGlob, covers: globCovers, concrete: noStar},
	{kind: Name, example: "name:critic", parse: parseGlob, covers: globCovers, concrete: noStar},
	{kind: State, example: "state:/namespace/notes:ro", parse: parsePath, covers: pathCovers, rights: pathRights},
	{kind: Secret, example: "secret:OPENAI_API_KEY", parse: parseGlob, covers: globCovers, concrete: noStar},
	{kind: Audit, example: "audit:acme/research", parse: parseNamespace, covers: pathCovers},
	{kind: Taint, example: "taint:web", parse: parseTaint, covers: samePattern},
}

// Kinds returns all kinds, in the order of the table.
func Kinds() []Kind {
	var kinds []Kind
	for _, g := range grammars {
		kinds = append(kinds, g.kind)
	}
	return kinds
}

// grammar returns nil for a kind that does not exist.
func (k Kind) grammar() *grammar {
	i := slices.IndexFunc(grammars, func(g grammar) bool { return g.kind == k })
	if i < 0 {
		return nil
	}
	return &grammars[i]
}

// covers compares rights of one kind; those of a kind without rights are equal.
func (r Rights) covers(narrow Rights) bool {
	return r == narrow || narrow == NoRights || r == ReadWrite && narrow == ReadOnly
}

// splitRights cuts the rights off a pattern. ro and rw are rights whatever the kind; the
// words of models are names elsewhere, as of a taint agent:provider-tools.
func (k Kind) splitRights(pattern string) (string, Rights) {
	cut := strings.LastIndexByte(pattern, ':')
	after := Rights(pattern[cut+1:])
	if cut >= 0 && after != NoRights && (slices.Contains(pathRights, after) || k == Model && slices.Contains(modelRights, after)) {
		return pattern[:cut], after
	}
	return pattern, NoRights
}

func samePattern(wide, narrow Scope) bool { return wide.pattern == narrow.pattern }

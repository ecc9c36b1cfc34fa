package expect

import (
	"encoding/json"
	"fmt"
	"path"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
)

// Document is a list of expectations as it is written.
type Document struct {
	Version int     `json:"version"`
	Policy  string  `json:"policy"` // a level, a name, or the path of a file from the document's directory
	Expect  []Entry `json:"expect"`
}

// Entry is one action with the answer that is expected. One of the first eight names the
// action.
type Entry struct {
	Connect string     `json:"connect"` // [udp://]HOST[:PORT]
	Read    string     `json:"read"`    // a path inside, as the following ones
	Write   string     `json:"write"`
	Exec    string     `json:"exec"`
	Syscall string     `json:"syscall"`
	Tool    string     `json:"tool"`
	Model   string     `json:"model"`
	Call    string     `json:"call"` // METHOD [PARAMETERS], a call of the agent's own socket
	Args    []Argument `json:"args"` // of the system call; those that are absent are 0
	Is      Answer     `json:"is"`
	Note    string     `json:"note"` // why, for people
}

// Argument is one argument of a system call, as the register that holds it.
type Argument uint64

// UnmarshalJSON takes negative numbers as the kernel does.
func (a *Argument) UnmarshalJSON(text []byte) error {
	if n, err := strconv.ParseInt(string(text), 10, 64); err == nil {
		*a = Argument(n)
		return nil
	}
	n, err := strconv.ParseUint(string(text), 10, 64)
	if err != nil {
		return invalid("write a whole number of 64 bits", "%.64s is no argument of a system call", text)
	}
	*a = Argument(n)
	return nil
}

// Answer is whether an action is done.
type Answer string

// The answers. Unknown is never expected.
const (
	Allow   Answer = "allow"
	Deny    Answer = "deny"
	Unknown Answer = "unknown" // it could not be tried
)

// Kind is what an entry does.
type Kind string

// The kinds, as the keys of a document.
const (
	Connect Kind = "connect"
	Read    Kind = "read"
	Write   Kind = "write"
	Exec    Kind = "exec"
	Syscall Kind = "syscall"
	Tool    Kind = "tool"
	Model   Kind = "model"
	Call    Kind = "call"
)

// Kinds are all of them.
var Kinds = []Kind{Connect, Read, Write, Exec, Syscall, Tool, Model, Call}

// Bounds of a document. Its entries are an argument of the probe's command line, of which
// Linux takes 128 KiB.
const (
	MostBytes   = 64 << 10
	MostEntries = 1000
)

const documentVersion = 1

// mostArguments of a system call on every machine.
const mostArguments = 6

// Parse reads a document. Targets and names are checked when they are decided.
func Parse(text []byte) (Document, error) {
	var d Document
	if len(text) > MostBytes {
		return d, invalid("write several files", "it has %d bytes, and may have %d", len(text), MostBytes)
	}
	if err := document.Decode(text, &d); err != nil {
		return d, err
	}
	switch {
	case d.Version != documentVersion:
		return d, invalid("write version: 1 in its first line", "version %d is not read here", d.Version)
	case d.Policy == "":
		return d, invalid("write policy: and a level, a name, or the path of a document", "it names no policy")
	case len(d.Expect) == 0 || len(d.Expect) > MostEntries:
		return d, invalid(fmt.Sprintf("list 1 to %d entries below expect", MostEntries), "it expects %d things", len(d.Expect))
	}
	for i, e := range d.Expect {
		if err := e.check(); err != nil {
			return d, at(i, err)
		}
	}
	return d, nil
}

// at says in which entry a mistake is.
func at(i int, err error) error {
	f := agent.FailureOf(err)
	return &agent.Error{Kind: agent.KindOf(err), Message: fmt.Sprintf("expect, entry %d: %s", i+1, f.Message), Hint: f.Hint}
}

func (e Entry) check() error {
	named := 0
	for _, row := range e.words() {
		if row != "" {
			named++
		}
	}
	const example = "write for example {read: /root, is: deny}"
	switch {
	case named != 1:
		return invalid(example, "it names %d actions, and one is needed: %s", named, "connect, read, write, exec, syscall, tool, model or call")
	case e.Is != Allow && e.Is != Deny:
		return invalid(example, "is: %.64q is neither allow nor deny", string(e.Is))
	case len(e.Args) > 0 && e.Syscall == "":
		return invalid("omit args", "only a system call has arguments")
	case len(e.Args) > mostArguments:
		return invalid("omit the last ones", "a system call has at most %d arguments", mostArguments)
	}
	switch kind, what := e.Action(); kind {
	case Read, Write, Exec:
		if !path.IsAbs(what) || strings.ContainsRune(what, 0) {
			return invalid("write a path inside, such as /workspace/a.py", "%.64q is not an absolute path", what)
		}
	}
	return nil
}

// words are the values of the kinds, in the order of Kinds.
func (e Entry) words() []string {
	return []string{e.Connect, e.Read, e.Write, e.Exec, e.Syscall, e.Tool, e.Model, e.Call}
}

// Action is what the entry does, and to what.
func (e Entry) Action() (Kind, string) {
	for i, word := range e.words() {
		if word != "" {
			return Kinds[i], word
		}
	}
	return "", ""
}

// Arguments are those of the system call, all six.
func (e Entry) Arguments() (args [6]uint64) {
	for i, a := range e.Args {
		args[i] = uint64(a)
	}
	return args
}

// String is the entry's action in one line.
func (e Entry) String() string {
	kind, what := e.Action()
	text := string(kind) + " " + what
	if len(e.Args) > 0 {
		words, _ := json.Marshal(e.Args) // numbers always encode
		text += " " + string(words)
	}
	return text
}

func invalid(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, values...), Hint: hint}
}

package clients

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/pelletier/go-toml/v2"

	"clove.run/clove/tools"
)

// codex is the form of Codex: a table [mcp_servers.NAME].
type codex struct{}

const codexServers = "mcp_servers"

// toolSeconds is how long Codex waits for a call: as long as one may take, and a minute.
const toolSeconds = int64(tools.MaxTimeout/1e9) + 60

func decodedTOML(text []byte) (root map[string]any, err error) {
	root = map[string]any{}
	if err := toml.Unmarshal(text, &root); err != nil {
		return nil, fmt.Errorf("it is not TOML: %w", err)
	}
	return root, nil
}

// serversOf are the servers of a file; nil: it has none.
func serversOf(root map[string]any) map[string]any {
	servers, _ := root[codexServers].(map[string]any)
	return servers
}

func (codex) read(text []byte, name string) (e Entry, found bool, err error) {
	root, err := decodedTOML(text)
	if err != nil {
		return e, false, err
	}
	value, found := serversOf(root)[name]
	if table, is := value.(map[string]any); is {
		e.Command, _ = table["command"].(string)
		args, _ := table["args"].([]any)
		for _, arg := range args {
			word, _ := arg.(string)
			e.Args = append(e.Args, word)
		}
	}
	return e, found, nil
}

// add writes a table at the end: before it nothing can change its meaning.
func (c codex) add(text []byte, name string, e Entry) ([]byte, error) {
	before, err := decodedTOML(text)
	if err != nil {
		return nil, err
	}
	rest, err := c.remove(text, name)
	if err != nil {
		return nil, err
	}
	newline := "\n"
	if bytes.Contains(rest, []byte("\r\n")) {
		newline = "\r\n"
	}
	var b strings.Builder
	b.Write(rest)
	if len(rest) > 0 && !bytes.HasSuffix(rest, []byte("\n")) {
		b.WriteString(newline)
	}
	if len(bytes.TrimSpace(rest)) > 0 {
		b.WriteString(newline)
	}
	words := make([]string, len(e.Args))
	for i, arg := range e.Args {
		words[i] = basicString(arg)
	}
	for _, line := range []string{"[" + codexServers + "." + name + "]", "command = " + basicString(e.Command), "args = [" + strings.Join(words, ", ") + "]",
		"tool_timeout_sec = " + strconv.FormatInt(toolSeconds, 10)} {
		b.WriteString(line + newline)
	}
	args := make([]any, len(e.Args))
	for i, arg := range e.Args {
		args[i] = arg
	}
	return checkedTOML(before, []byte(b.String()), name, map[string]any{"command": e.Command, "args": args, "tool_timeout_sec": toolSeconds})
}

// basicString is a text as a string of TOML.
func basicString(text string) string {
	var b strings.Builder
	b.WriteByte('"')
	for _, c := range text {
		switch {
		case c == '"' || c == '\\':
			b.WriteString(`\` + string(c))
		case c < ' ' || c == 0x7f:
			fmt.Fprintf(&b, `\u%04X`, c)
		default:
			b.WriteRune(c)
		}
	}
	return b.String() + `"`
}

// remove takes the table out, with those below it, and the empty line before it. An entry that is written in
// another way is not found, and refused by checkedTOML.
func (c codex) remove(text []byte, name string) ([]byte, error) {
	before, err := decodedTOML(text)
	if err != nil {
		return nil, err
	}
	if _, found := serversOf(before)[name]; !found {
		return text, nil
	}
	quoted := regexp.QuoteMeta(name)
	own := regexp.MustCompile(`^\s*\[\s*["']?` + codexServers + `["']?\s*\.\s*["']?` + quoted + `["']?\s*(\.[^\]]*)?\]`)
	any := regexp.MustCompile(`^\s*\[`)
	lines := slices.Collect(bytes.Lines(text))
	var kept [][]byte
	for i := 0; i < len(lines); {
		if !own.Match(lines[i]) {
			kept = append(kept, lines[i])
			i++
			continue
		}
		end := i + 1
		for end < len(lines) && !any.Match(lines[end]) {
			end++
		}
		// Comments and empty lines before the next table are that one's.
		for end > i+1 && end < len(lines) && isComment(lines[end-1]) {
			end--
		}
		for len(kept) > 0 && len(bytes.TrimSpace(kept[len(kept)-1])) == 0 {
			kept = kept[:len(kept)-1]
		}
		i = end
	}
	return checkedTOML(before, bytes.Join(kept, nil), name, nil)
}

func isComment(line []byte) bool {
	line = bytes.TrimSpace(line)
	return len(line) == 0 || line[0] == '#'
}

// checkedTOML returns after, if it means what before does with this one entry changed; nil: taken out.
func checkedTOML(before map[string]any, after []byte, name string, entry map[string]any) ([]byte, error) {
	got, err := decodedTOML(after)
	if err != nil {
		return nil, ErrChanged
	}
	if !reflect.DeepEqual(withoutEntry(got, name), withoutEntry(before, name)) {
		return nil, ErrChanged
	}
	if found, has := serversOf(got)[name]; has != (entry != nil) || has && !reflect.DeepEqual(found, any(entry)) {
		return nil, ErrChanged
	}
	return after, nil
}

// withoutEntry is a root without an entry. A table of servers that is empty means none.
func withoutEntry(root map[string]any, name string) map[string]any {
	servers := maps.Clone(serversOf(root))
	delete(servers, name)
	rest := maps.Clone(root)
	if delete(rest, codexServers); len(servers) > 0 {
		rest[codexServers] = servers
	}
	return rest
}

package clients

import "encoding/json"

// claude is the form of Claude Code: {"mcpServers": {"NAME": {"command": …, "args": […]}}}.
type claude struct{}

type claudeEntry struct {
	Type    string   `json:"type"`
	Command string   `json:"command"`
	Args    []string `json:"args"`
}

var claudeKeys = []string{"mcpServers"}

func (claude) read(text []byte, name string) (e Entry, found bool, err error) {
	var file struct {
		Servers map[string]json.RawMessage `json:"mcpServers"`
	}
	raw, found, err := entryIn(text, &file, func() json.RawMessage { return file.Servers[name] })
	if !found {
		return e, false, err
	}
	var own claudeEntry
	_ = json.Unmarshal(raw, &own) // one of another form is another's
	return Entry{own.Command, own.Args}, true, nil
}

func (claude) add(text []byte, name string, e Entry) ([]byte, error) {
	return addJSON(text, claudeKeys, name, claudeEntry{"stdio", e.Command, e.Args})
}

func (claude) remove(text []byte, name string) ([]byte, error) {
	return removeJSON(text, claudeKeys, name)
}

// opencode is the form of opencode: {"mcp": {"NAME": {"type": "local", "command": […]}}}, which its second version
// reads, too. That has a form of its own, with "servers" between: a file that has it is kept so.
type opencode struct{}

type opencodeEntry struct {
	Type    string   `json:"type"`
	Command []string `json:"command"`
}

// keys are those of a text.
func (opencode) keys(text []byte) []string {
	var file struct {
		MCP struct {
			Servers map[string]json.RawMessage `json:"servers"`
		} `json:"mcp"`
	}
	err := json.Unmarshal(standard(text), &file)
	if _, server := file.MCP.Servers["type"]; err == nil && file.MCP.Servers != nil && !server { // not one called servers
		return []string{"mcp", "servers"}
	}
	return []string{"mcp"}
}

func (o opencode) read(text []byte, name string) (e Entry, found bool, err error) {
	var file struct {
		MCP map[string]json.RawMessage `json:"mcp"`
	}
	raw, found, err := entryIn(text, &file, func() json.RawMessage {
		if len(o.keys(text)) == 1 {
			return file.MCP[name]
		}
		var servers map[string]json.RawMessage
		_ = json.Unmarshal(file.MCP["servers"], &servers) // keys has read it
		return servers[name]
	})
	if !found {
		return e, false, err
	}
	var own opencodeEntry
	if json.Unmarshal(raw, &own) == nil && len(own.Command) > 0 {
		e = Entry{own.Command[0], own.Command[1:]}
	}
	return e, true, nil
}

func (o opencode) add(text []byte, name string, e Entry) ([]byte, error) {
	return addJSON(text, o.keys(text), name, opencodeEntry{"local", append([]string{e.Command}, e.Args...)})
}

func (o opencode) remove(text []byte, name string) ([]byte, error) {
	return removeJSON(text, o.keys(text), name)
}

// entryIn reads a text into file, and returns what of gives then.
func entryIn(text []byte, file any, of func() json.RawMessage) (raw json.RawMessage, found bool, err error) {
	root, err := decoded(text)
	if err != nil || len(root) == 0 {
		return nil, false, err
	}
	if err := json.Unmarshal(standard(text), file); err != nil {
		return nil, false, err
	}
	raw = of()
	return raw, raw != nil, nil
}

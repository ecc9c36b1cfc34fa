package people

import (
	"context"
	"encoding/json"
	"slices"
	"strings"

	"clove.run/clove/tools"
)

// tool is a row of the table.
type tool struct {
	tools.Tool
	function
}

// function is what a tool does.
type function struct {
	inside bool // in a sandbox
	do     func(context.Context, *Server, json.RawMessage) (answer, error)
}

var (
	yes, no = true, false

	reads   = tools.Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no}
	inside  = tools.Annotations{ReadOnly: &no, Destructive: &no, OpenWorld: &no} // whatever it does, the host's files stay
	writes  = tools.Annotations{ReadOnly: &no, Destructive: &yes, OpenWorld: &no}
	reaches = tools.Annotations{ReadOnly: &yes, Destructive: &no, OpenWorld: &yes}
	starts  = tools.Annotations{ReadOnly: &no, Destructive: &no, OpenWorld: &yes}
	ends    = tools.Annotations{ReadOnly: &no, Destructive: &yes, Idempotent: &yes, OpenWorld: &no}
)

// Parts of schemas.
const (
	timeoutSchema = `"timeout_seconds":{"type":"integer","minimum":1,"maximum":3600,"description":"Then it is ended, with all that it started. Default 120."}`
	handleSchema  = `"sandbox":{"type":"string","description":"The handle of a sandbox, which run_code, run_command, write_file and fetch return where none is given: they make a new one. It ends when it is unused for 30 minutes."}`
	pathSchema    = `"path":{"type":"string","minLength":1,"description":"A path in the sandbox. A relative one begins at /workspace."}`
)

// object is the schema of an object.
func object(properties, required string) json.RawMessage {
	return json.RawMessage(`{"type":"object","properties":{` + properties + `},"required":[` + required + `],"additionalProperties":false}`)
}

// table has all tools, in the order of their names.
func table() []tool {
	return []tool{
		{tools.Tool{Name: "apply_changes", Title: "Write changes back to the folder", Annotations: writes,
			Description: "Write what was changed in /workspace of the sandbox back to the user's folder on this computer. Call it first as it is (dry_run): it shows the changes as a patch, with a digest. Show them to the user; then call it with dry_run false and that digest. It writes nothing that was not shown, and leaves out files that the user changed meanwhile.",
			Arguments:   object(`"dry_run":{"type":"boolean","default":true,"description":"Only show the changes."},"digest":{"type":"string","description":"Of the dry run. Needed where dry_run is false."},"paths":{"type":"array","items":{"type":"string"},"description":"Only these files and folders. Default: all."}`, ``)},
			inSandbox((*sandbox).applyChanges, known)},
		{tools.Tool{Name: "ask_agent", Title: "Ask an agent", Annotations: starts,
			Description: "Start an agent with a prompt and wait for its answer; or, with the name that spawn_agent gave and no prompt, wait for the answer of that one.",
			Arguments:   object(`"agent":{"type":"string","description":"A name of list_agents."},"prompt":{"type":"string","description":"What the agent is to do."},"timeout_seconds":{"type":"integer","minimum":1,"maximum":3600,"description":"How long to wait. The agent works on after it. Default 120."}`, `"agent"`)},
			typed((*Server).askAgent)},
		{tools.Tool{Name: "fetch", Title: "Fetch a URL", Annotations: reaches,
			Description: "Read a URL of http or https from inside the sandbox, with the network that the user has given it: without --allow or --network it reaches nothing.",
			Arguments:   object(`"url":{"type":"string","minLength":1},`+timeoutSchema, `"url"`)},
			inSandbox((*sandbox).fetch, fresh)},
		{tools.Tool{Name: "kill_agent", Title: "End an agent", Annotations: ends,
			Description: "End an agent that spawn_agent or ask_agent has started.",
			Arguments:   object(`"agent":{"type":"string","description":"The name that spawn_agent gave."}`, `"agent"`)},
			typed((*Server).killAgent)},
		{tools.Tool{Name: "list_agents", Title: "List agents", Annotations: reads,
			Description: "List the agents that can be started, and those that were started here with how they are.",
			Arguments:   object(``, ``)},
			typed((*Server).listAgents)},
		{tools.Tool{Name: "list_files", Title: "List a folder", Annotations: reads,
			Description: "List the files in a folder of the sandbox: type (f file, d folder, l link), bytes, name. At most 2000.",
			Arguments:   object(`"path":{"type":"string","description":"A folder in the sandbox. Default: /workspace."},"depth":{"type":"integer","minimum":1,"maximum":16,"description":"Levels of folders. Default 1."}`, ``)},
			inSandbox((*sandbox).listFiles, known)},
		{tools.Tool{Name: "read_file", Title: "Read a file", Annotations: reads,
			Description: "Read a text file of the sandbox. Of more than 48 KiB the middle is left out: use offset and limit.",
			Arguments:   object(pathSchema+`,"offset":{"type":"integer","minimum":1,"description":"The first line, from 1."},"limit":{"type":"integer","minimum":1,"description":"How many lines."}`, `"path"`)},
			inSandbox((*sandbox).readFile, known)},
		{tools.Tool{Name: "run_code", Title: "Run code in a sandbox", Annotations: inside,
			Description: "Run a program of Python, Node.js or bash in a sandbox, and return what it writes. The sandbox lasts until this server ends: files stay from call to call, variables and processes do not. It sees none of the user's files but those in /workspace, which is a copy, and has no network unless the user gave it one.",
			Arguments:   object(`"language":{"type":"string","enum":["python","node","bash"]},"code":{"type":"string","minLength":1},`+timeoutSchema, `"language","code"`)},
			inSandbox((*sandbox).runCode, fresh)},
		{tools.Tool{Name: "run_command", Title: "Run a shell command in a sandbox", Annotations: inside,
			Description: "Run a command of a shell (bash -c) in the sandbox of run_code, and return what it writes to stdout and stderr. What it leaves running in the background is ended with the call.",
			Arguments:   object(`"command":{"type":"string","minLength":1,"description":"Text for the shell, as: ls -l | head"},"directory":{"type":"string","description":"Where it runs. Default: /workspace."},`+timeoutSchema, `"command"`)},
			inSandbox((*sandbox).runCommand, fresh)},
		{tools.Tool{Name: "spawn_agent", Title: "Start an agent", Annotations: starts,
			Description: "Start an agent in a sandbox of its own, and go on. It works on a copy of the user's folder where it has one, and ends with this server.",
			Arguments:   object(`"agent":{"type":"string","description":"A name of list_agents."},"prompt":{"type":"string","description":"What the agent is to do."}`, `"agent"`)},
			typed((*Server).spawnAgent)},
		{tools.Tool{Name: "write_file", Title: "Write a file", Annotations: inside,
			Description: "Write a text file in the sandbox, with the folders above it. The user's own files stay as they are until apply_changes. A longer text is written in parts, with append.",
			Arguments:   object(pathSchema+`,"content":{"type":"string"},"append":{"type":"boolean","default":false,"description":"Add to the file's end."}`, `"path","content"`)},
			inSandbox((*sandbox).writeFile, fresh)},
	}
}

// list is what a program sees of the table.
func (s *Server) list() (all []tools.Tool) {
	for _, t := range table() {
		if s.Handles && t.inside {
			t.Arguments = json.RawMessage(strings.Replace(string(t.Arguments), `"properties":{`, `"properties":{`+handleSchema+`,`, 1))
		}
		all = append(all, t.Tool)
	}
	return all
}

// find is the tool of a name; nil: there is none.
func find(name string) *tool {
	all := table()
	at := slices.IndexFunc(all, func(t tool) bool { return t.Name == name })
	if at < 0 {
		return nil
	}
	return &all[at]
}

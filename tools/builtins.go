package tools

import (
	"encoding/json"
	"slices"
	"time"
)

// Times that a call may ask for.
const (
	MaxExecTime = 10 * time.Minute // exec
	MaxLookTime = 2 * time.Minute  // fetch and git
	margin      = 10 * time.Second // for the program to end by itself
)

var yes, no = true, false

// Annotations that several tools have.
var (
	reads  = Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &no}
	writes = Annotations{ReadOnly: &no, Destructive: &yes, Idempotent: &yes, OpenWorld: &no}
)

// builtins is in the order in which tools are listed.
var builtins = []Definition{
	builtin("echo", "Echo", "Return the text. It shows that tools work.",
		`"text": {"type": "string"}`, `"text"`, reads),
	builtin("read", "Read a file", "Read lines of a text file of at most 4 MB. A result that is not whole says at which line to go on.",
		`"path": {"type": "string", "minLength": 1},
		"offset": {"type": "integer", "minimum": 1, "description": "first line, default 1"},
		"limit": {"type": "integer", "minimum": 1, "description": "number of lines, default 2000"}`, `"path"`, reads),
	builtin("write", "Write a file", "Write a file of at most 4 MB. It is made with its folders, or replaced.",
		`"path": {"type": "string", "minLength": 1}, "content": {"type": "string"}`, `"path", "content"`, writes),
	builtin("edit", "Edit a file", "Replace a text in a file. old must be in it exactly once, or all be true.",
		`"path": {"type": "string", "minLength": 1}, "old": {"type": "string", "minLength": 1}, "new": {"type": "string"}, "all": {"type": "boolean"}`,
		`"path", "old", "new"`, Annotations{ReadOnly: &no, Destructive: &yes, Idempotent: &no, OpenWorld: &no}),
	builtin("glob", "Find files by name", "List files whose path below cwd matches a pattern: * and ? match within a name, ** any number of folders, [a-z] one of a set, {a,b} alternatives. Links to folders are not followed.",
		`"pattern": {"type": "string", "minLength": 1, "maxLength": 1024},
		"cwd": {"type": "string", "description": "default: the working directory"},
		"max_results": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "default 1000"}`, `"pattern"`, reads),
	builtin("grep", "Search in files", "Search lines with a regular expression in RE2's syntax, in a file or in all files below a folder. Each match is PATH:LINE:TEXT. Binary files and links to folders are skipped.",
		`"pattern": {"type": "string", "minLength": 1, "maxLength": 4096},
		"path": {"type": "string", "description": "a file or folder, default: the working directory"},
		"glob": {"type": "string", "maxLength": 1024, "description": "only files whose path below the folder, or name if it has no slash, matches"},
		"ignore_case": {"type": "boolean"},
		"max_matches": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "default 1000"}`, `"pattern"`, reads),
	builtin("list", "List a folder", "List a folder: names, folders with a slash, and sizes in bytes.",
		`"path": {"type": "string", "description": "default: the working directory"},
		"max_entries": {"type": "integer", "minimum": 1, "maximum": 10000, "description": "default 1000"},
		"include_hidden": {"type": "boolean", "description": "also names that begin with a dot"}`, ``, reads),
	timed(MaxExecTime, resulting(`"exit_code": {"type": "integer", "description": "-1: a signal ended it"},
		"stdout": {"type": "string"}, "stderr": {"type": "string"}, "stdout_truncated": {"type": "boolean"}, "stderr_truncated": {"type": "boolean"},
		"timed_out": {"type": "boolean"}, "duration_s": {"type": "number"}`,
		builtin("exec", "Run a program", "Run a program with arguments. There is no shell: pipes, redirections and patterns do not work. All that it left running is killed at its end.",
			`"argv": {"type": "array", "minItems": 1, "maxItems": 1024, "items": {"type": "string"}, "description": "the program, as an absolute path or a name on PATH, and its arguments"},
			"env": {"type": "object", "additionalProperties": {"type": "string"}, "description": "added to the environment"},
			"cwd": {"type": "string", "description": "default: the working directory"},
			"stdin": {"type": "string", "description": "default: empty"},
			"timeout_s": {"type": "integer", "minimum": 1, "maximum": 600, "description": "default 60"},
			"max_output_bytes": {"type": "integer", "minimum": 1, "maximum": 4194304, "description": "of stdout, and of stderr; default 262144. The middle is left out"}`, `"argv"`,
			Annotations{ReadOnly: &no, Destructive: &yes, Idempotent: &no, OpenWorld: &yes}))),
	timed(MaxLookTime, resulting(`"url": {"type": "string", "description": "of the last hop"}, "status": {"type": "integer"},
		"headers": {"type": "object", "additionalProperties": {"type": "string"}},
		"body": {"type": "string"}, "encoding": {"enum": ["text", "base64"]}, "body_bytes": {"type": "integer", "description": "as received"},
		"truncated": {"type": "boolean"}, "redirects": {"type": "array", "items": {"type": "string"}}, "duration_s": {"type": "number"}`,
		builtin("fetch", "Fetch a URL", "Get a page or a document of the web by http or https. HTML becomes readable text. Other types than text, JSON and XML need binary.",
			`"url": {"type": "string", "minLength": 1, "maxLength": 8192},
			"method": {"enum": ["GET", "HEAD"], "description": "default GET"},
			"headers": {"type": "object", "maxProperties": 32, "additionalProperties": {"type": "string", "maxLength": 4096}},
			"max_bytes": {"type": "integer", "minimum": 1, "maximum": 16777216, "description": "of the body, default 4194304"},
			"timeout_s": {"type": "integer", "minimum": 1, "maximum": 120, "description": "default 30"},
			"max_redirects": {"type": "integer", "minimum": 0, "maximum": 5, "description": "default 3"},
			"raw": {"type": "boolean", "description": "HTML as it is"},
			"binary": {"type": "boolean", "description": "any type; what is no text comes in base64"}`, `"url"`,
			Annotations{ReadOnly: &yes, Destructive: &no, Idempotent: &yes, OpenWorld: &yes}))),
	timed(MaxLookTime, builtin("git", "Look into a git repository", "Read a git repository: state, history, differences. Nothing is changed, and no program that the repository's configuration names is run.",
		`"op": {"enum": ["status", "log", "diff", "show", "branch", "blame", "ls_files", "rev_parse"]},
		"repo": {"type": "string", "description": "a folder in it, default: the working directory"},
		"ref": {"type": "string", "maxLength": 1024, "description": "a commit, or a range as main..topic"},
		"path": {"type": "string", "maxLength": 4096, "description": "only this file or folder"},
		"args": {"type": "array", "maxItems": 32, "items": {"type": "string", "maxLength": 256}, "description": "options of the subcommand, as --stat or -n5; others than those that only read are refused with a list"},
		"timeout_s": {"type": "integer", "minimum": 1, "maximum": 120, "description": "default 30"}`, `"op"`, reads)),
}

// named are the tools for which a grant must have their name.
var named = []string{"exec", "fetch", "git"}

func builtin(name, title, description, properties, required string, a Annotations) Definition {
	d := Definition{Tool: Tool{Name: name, Title: title, Description: description, Arguments: object(properties, required), Annotations: a}, Kind: KindBuiltin, Place: PlaceAgent}
	d.Named = slices.Contains(named, name)
	return d
}

// timed gives the program as long as a call may ask for.
func timed(longest time.Duration, d Definition) Definition {
	d.Timeout = longest + margin
	return d
}

// resulting says that the result is a JSON object.
func resulting(properties string, d Definition) Definition {
	d.Result = object(properties, ``)
	return d
}

func object(properties, required string) json.RawMessage {
	return json.RawMessage(`{"type": "object", "properties": {` + properties + `}, "required": [` + required + `], "additionalProperties": false}`)
}

// Builtins are the built-in tools. The caller owns the slice, and must not change what it has.
func Builtins() []Definition { return slices.Clone(builtins) }

// Builtin finds a built-in tool by its name.
func Builtin(name string) (Definition, bool) {
	i := slices.IndexFunc(builtins, func(d Definition) bool { return d.Name == name })
	if i < 0 {
		return Definition{}, false
	}
	return builtins[i], true
}

package policies

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/internal/document"
)

// Document is a policy as it is written. A key that is absent leaves the value of what the
// document extends. Texts have the notation of the flag with the same meaning.
type Document struct {
	Version     int               `json:"version" required:"true" doc:"the version of this format: 1"`
	Name        string            `json:"name" required:"true" doc:"a word of letters, digits, '-', '_' and '.'; a file that is found by its name is called NAME.yaml"`
	Description string            `json:"description,omitempty" doc:"what it is for, in a sentence"`
	Extends     string            `json:"extends,omitempty" doc:"a level (unrestricted, standard, sandboxed, readonly, minimal), the name of another document, or the path of one; standard if it is absent"`
	Widen       map[string]string `json:"widen,omitempty" doc:"for each key in which this document allows more than what it extends: why. A key stands for all keys below it: network for network.mode"`

	Limits       Limits          `json:"limits,omitzero" doc:"limits of all processes of the agent together"`
	Ulimits      map[string]Text `json:"ulimits,omitempty" doc:"resource limits of each process: nofile: 1024, or SOFT:HARD"`
	Files        Files           `json:"files,omitzero" doc:"what of the host appears inside, and what may be written"`
	User         string          `json:"user,omitempty" doc:"the user inside: agent, root, or UID[:GID]; root is root inside only"`
	Capabilities Capabilities    `json:"capabilities,omitzero" doc:"capabilities of root inside"`
	Seccomp      string          `json:"seccomp,omitempty" doc:"the filter of system calls: unconfined, standard, strict, minimal, or the path of a file in docker's JSON format"`
	Environment  Environment     `json:"environment,omitzero" doc:"variables; nothing else of the caller's is inherited"`

	Network     Network  `json:"network,omitzero" doc:"what the agent reaches"`
	Models      []string `json:"models,omitempty" doc:"names or globs of language models that it may call"`
	Grants      []string `json:"grants,omitempty" doc:"KIND:PATTERN[:RIGHTS], as clove run --grant"`
	Budgets     []string `json:"budgets,omitempty" doc:"DIMENSION=AMOUNT[/PERIOD][,warn=AMOUNT], as clove run --budget; one for each dimension"`
	AtEnd       string   `json:"at_end,omitempty" enum:"end|pause|refuse" doc:"what happens when a budget is spent"`
	OnDenial    string   `json:"on_denial,omitempty" doc:"what a refusal does to the run: deny, pause, end or end-after:N"`
	AgentSocket *bool    `json:"agent_socket,omitempty" doc:"whether the agent has a socket of its own"`

	AllowUnenforced []string `json:"allow_unenforced,omitempty" doc:"controls that may be missing on this host, as clove run --allow-unenforced"`
}

// Limits are those of clove run.
type Limits struct {
	Memory      Text   `json:"memory,omitempty" doc:"size, caches included: 512M"`
	MemorySwap  Text   `json:"memory_swap,omitempty" doc:"size of memory and swap together; -1: any amount of swap; as memory, no swap, if it is absent"`
	CPUs        Text   `json:"cpus,omitempty" doc:"CPU seconds per second: 0.5"`
	CPUSet      string `json:"cpuset,omitempty" doc:"the CPUs that it may run on: 0-2,4"`
	Pids        Text   `json:"pids,omitempty" doc:"processes and threads at once"`
	CPUTime     Text   `json:"cpu_time,omitempty" doc:"CPU time of all processes together: 90s"`
	Timeout     Text   `json:"timeout,omitempty" doc:"wall clock time: 10m"`
	StopTimeout Text   `json:"stop_timeout,omitempty" doc:"time between the request to end and KILL"`
	Output      Text   `json:"output,omitempty" doc:"size of stdout and stderr together"`
	Disk        Text   `json:"disk,omitempty" doc:"size of the writable layer"`
	Shm         Text   `json:"shm,omitempty" doc:"size of /dev/shm"`
}

// Files are the places of the agent's file system.
type Files struct {
	Root     string   `json:"root,omitempty" enum:"writable|read-only" doc:"whether the base system can be changed, in a private layer; /workspace, /tmp, /var/tmp, the home and /dev/shm stay writable"`
	Writable []string `json:"writable,omitempty" doc:"with a read-only root: which of /workspace, /tmp, /var/tmp, /home/agent and /dev/shm stay writable"`
	Execute  []string `json:"execute,omitempty" doc:"with a read-only root: the only programs that may be executed, as paths inside: files, folders of programs or libraries, patterns such as /usr/lib/git-core/*; what a program is linked with belongs to it"`
	Read     []string `json:"read,omitempty" doc:"the only files and folders that may be read, as paths inside, beside the agent's own /tmp, /var/tmp, /home/agent, /dev and /proc; programs and libraries must be among them: /usr"`
	Landlock string   `json:"landlock,omitempty" enum:"required" doc:"required: the run is refused where Landlock does not hold the rules of files a second time"`
	Volumes  []string `json:"volumes,omitempty" doc:"SOURCE:TARGET[:ro], directories of the host"`
	Tmpfs    []string `json:"tmpfs,omitempty" doc:"TARGET[:size=SIZE,mode=OCTAL]"`
	Rootfs   string   `json:"rootfs,omitempty" doc:"a directory of the host that replaces the base system"`
}

// Capabilities are those of root inside.
type Capabilities struct {
	Drop []string `json:"drop,omitempty" doc:"names such as CHOWN, or ALL"`
}

// Environment are variables.
type Environment struct {
	Set  map[string]string `json:"set,omitempty" doc:"variables and their values"`
	Pass []string          `json:"pass,omitempty" doc:"variables that the caller's environment gives the value of"`
}

// Network is what the agent reaches.
type Network struct {
	Mode        string   `json:"mode,omitempty" enum:"none|allowlist|public|host" doc:"none: nothing; allowlist: what allow names; public: the internet; host: the host's own network, without any rule"`
	Allow       []string `json:"allow,omitempty" doc:"targets: api.example.com, *.example.com, 10.1.0.0/16, each with :PORT"`
	Deny        []string `json:"deny,omitempty" doc:"targets that stay out of reach, whatever allows them"`
	HostPorts   []uint16 `json:"host_ports,omitempty" doc:"ports of the host's 127.0.0.1"`
	DNS         []string `json:"dns,omitempty" doc:"name servers"`
	Connections Text     `json:"connections,omitempty" doc:"connections open at once"`
	Rate        Text     `json:"rate,omitempty" doc:"new connections per second"`
	Bytes       Text     `json:"bytes,omitempty" doc:"size, in and out together, over the whole run"`
}

// Text is a text that may be written as a number.
type Text string

// UnmarshalJSON takes a text or a number as it is written.
func (t *Text) UnmarshalJSON(text []byte) error {
	if len(text) > 0 && (text[0] == '-' || text[0] >= '0' && text[0] <= '9') {
		*t = Text(text)
		return nil
	}
	return json.Unmarshal(text, (*string)(t))
}

// SchemaTypes implements document.Worded.
func (Text) SchemaTypes() []string { return []string{"string", "number"} }

// MostBytes bounds a document.
const MostBytes = 256 << 10

// reasonMost bounds a reason of widen, in bytes.
const reasonMost = 500

// documentVersion is the version that this clove reads.
const documentVersion = 1

// Parse reads a document. Its values are checked when a spec is built from it.
func Parse(text []byte) (Document, error) {
	var d Document
	if len(text) > MostBytes {
		return d, invalid("write the values out in fewer lines", "it has %d bytes, and may have %d", len(text), MostBytes)
	}
	if err := document.Decode(text, &d); err != nil {
		return d, err
	}
	switch {
	case d.Version == 0:
		return d, invalid("write version: 1 in its first line", "it names no version")
	case d.Version != documentVersion:
		return d, invalid("this clove reads version 1", "it has version %d", d.Version)
	case agent.ValidateName(d.Name) != nil:
		return d, invalid("write name: and a word of letters, digits, '-', '_' and '.'", "%.64q is no name of a policy", d.Name)
	case d.Files.Root != "" && d.Files.Root != rootWritable && d.Files.Root != RootReadOnly:
		return d, invalid("write writable or read-only", "files.root: %.64q is neither", d.Files.Root)
	}
	for _, key := range slices.Sorted(maps.Keys(d.Widen)) {
		if reason := d.Widen[key]; len(reason) > reasonMost || strings.ContainsFunc(reason, func(c rune) bool { return !strconv.IsPrint(c) }) {
			return d, invalid(fmt.Sprintf("say why in one line of at most %d bytes", reasonMost), "widen.%s: the reason is no such line", key)
		}
		if d.Widen[key] == "" {
			return d, invalid("say why in a few words", "widen.%s: the reason is empty", key)
		}
		if !isKey(key) {
			return d, invalid(document.Meant(key, keys, "name a key of the document, such as network or limits.memory"), "widen: there is no key %.64q", key)
		}
	}
	return d, nil
}

// The values of files.root.
const (
	rootWritable = "writable"
	RootReadOnly = "read-only"
)

func invalid(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, values...), Hint: hint}
}

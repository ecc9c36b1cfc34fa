package policies

import (
	"embed"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
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

// TopKeys are the keys at the top of a document that hold values of a run.
var TopKeys = slices.DeleteFunc(slices.Clone(keys), func(key string) bool { return strings.Contains(key, ".") })

// Meant is a hint that names what was probably meant; otherwise it is the other text.
func Meant(word string, known []string, otherwise string) string {
	return document.Meant(word, known, otherwise)
}

// keys are the places of a document that widen may name: each key with values, and what
// holds such keys.
var keys = placesOf("", reflect.TypeFor[Document]())

func placesOf(at string, t reflect.Type) (all []string) {
	for i := range t.NumField() {
		name, _, _ := strings.Cut(t.Field(i).Tag.Get("json"), ",")
		if at == "" && slices.Contains([]string{"version", "name", "description", "extends", "widen"}, name) {
			continue
		}
		all = append(all, at+name)
		if inner := t.Field(i).Type; inner.Kind() == reflect.Struct {
			all = append(all, placesOf(at+name+".", inner)...)
		}
	}
	return all
}

func isKey(key string) bool { return slices.Contains(keys, key) || strings.HasPrefix(key, "ulimits.") }

// Reason returns the reason that widen gives for a place, by its own name or that of what
// holds it.
func (d Document) Reason(place string) string {
	for at := place; at != ""; {
		if reason := d.Widen[at]; reason != "" {
			return reason
		}
		cut := strings.LastIndex(at, ".")
		at = at[:max(cut, 0)]
	}
	return ""
}

// Names reports whether the document has a value at a place or below it: network.mode, or
// network.
func (d Document) Names(place string) bool {
	value := reflect.ValueOf(d)
	for part := range strings.SplitSeq(place, ".") {
		if value.Kind() == reflect.Map {
			return value.MapIndex(reflect.ValueOf(part)).IsValid()
		}
		found := false
		for i := range value.NumField() {
			if name, _, _ := strings.Cut(value.Type().Field(i).Tag.Get("json"), ","); name == part {
				value, found = value.Field(i), true
				break
			}
		}
		if !found {
			return false
		}
	}
	return !value.IsZero()
}

// Over lays d over what it extends. Name, description, extends and widen stay d's.
func (d Document) Over(base Document) Document {
	drop, deny := base.Capabilities.Drop, base.Network.Deny
	ulimits, set, pass := base.Ulimits, base.Environment.Set, base.Environment.Pass
	merged := layered(reflect.ValueOf(base), reflect.ValueOf(d)).Interface().(Document)
	merged.Capabilities.Drop = added(drop, d.Capabilities.Drop)
	merged.Network.Deny = added(deny, d.Network.Deny)
	merged.Environment.Pass = added(pass, d.Environment.Pass)
	merged.Ulimits = addedKeys(ulimits, d.Ulimits)
	merged.Environment.Set = addedKeys(set, d.Environment.Set)
	// A budget replaces the one of its dimension only.
	merged.Budgets = slices.Clone(d.Budgets)
	for _, text := range base.Budgets {
		dimension, _, _ := strings.Cut(text, "=")
		if !slices.ContainsFunc(d.Budgets, func(own string) bool { return strings.HasPrefix(own, dimension+"=") }) {
			merged.Budgets = append(merged.Budgets, text)
		}
	}
	// Swap follows memory: a document that names only memory means no swap beyond it.
	if d.Limits.Memory != "" && d.Limits.MemorySwap == "" {
		merged.Limits.MemorySwap = ""
	}
	// Rules of the wider mode mean nothing where there is no network, or no rule.
	if d.Network.Mode == agent.NetworkNone || d.Network.Mode == agent.NetworkHost {
		merged.Network.Allow, merged.Network.DNS = d.Network.Allow, d.Network.DNS
		merged.Network.Deny = d.Network.Deny
	}
	if d.Files.Root == rootWritable {
		merged.Files.Writable = d.Files.Writable
	}
	merged.Name, merged.Description, merged.Extends, merged.Widen = d.Name, d.Description, d.Extends, d.Widen
	return merged
}

// layered is base with each value that over has.
func layered(base, over reflect.Value) reflect.Value {
	result := reflect.New(base.Type()).Elem()
	result.Set(base)
	for i := range base.NumField() {
		switch field := over.Field(i); {
		case field.Kind() == reflect.Struct:
			result.Field(i).Set(layered(base.Field(i), field))
		case !field.IsZero():
			result.Field(i).Set(field)
		}
	}
	return result
}

func added[T comparable](base, more []T) []T {
	all := slices.Clone(base)
	for _, item := range more {
		if !slices.Contains(all, item) {
			all = append(all, item)
		}
	}
	return all
}

func addedKeys[V any](base, more map[string]V) map[string]V {
	if len(base)+len(more) == 0 {
		return nil
	}
	all := maps.Clone(base)
	if all == nil {
		all = map[string]V{}
	}
	maps.Copy(all, more)
	return all
}

// Schema is the JSON Schema of documents.
func Schema() []byte {
	return document.Schema("https://clove.run/schema/policy-1.json", "clove policy, version 1", Document{})
}

//go:embed levels/*.yaml
var levelFiles embed.FS

// Levels are the names of the built-in levels, from the widest to the narrowest.
var Levels = []string{"unrestricted", StandardName, "sandboxed", "readonly", "minimal"}

// Level returns the text of a built-in level; ok is false if there is none of that name.
func Level(name string) (text []byte, ok bool) {
	if !slices.Contains(Levels, name) {
		return nil, false
	}
	text, err := levelFiles.ReadFile("levels/" + name + ".yaml")
	if err != nil {
		panic(err) // embedded with the program
	}
	return text, true
}

func invalid(hint, format string, values ...any) error {
	return &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf(format, values...), Hint: hint}
}

package bundle

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"
	"sync"
)

// leftOut replaces what was removed.
const leftOut = "(left out)"

// harmless lists the strings of a stored run that may be shown, by path: "[]" is an element
// of a list, "{}" a value with a varying key. Numbers, booleans and keys are always shown.
//
// Left out because they are not listed: values of the environment and of labels, the
// arguments of the command, a seccomp document, and the targets and rules of denials,
// because the agent chooses those names.
var harmless = sync.OnceValue(func() map[string]bool {
	return set(`
	spec.id spec.name spec.dir spec.user.name spec.user.home spec.cap_drop[] spec.hostname spec.limits.cpuset_cpus spec.limits.rlimits[].name
	spec.files.rootfs spec.files.workspace spec.files.prefixes[] spec.files.writable[] spec.files.binds[].source spec.files.binds[].target
	spec.files.tmpfs[].target spec.seccomp.profile spec.network spec.egress.rules[].target spec.egress.rules[].source
	spec.egress.publish[].host spec.egress.dns[] spec.policy.name spec.policy.sha256 spec.restart.policy spec.after[]
	spec.allow_unenforced[]
	state turn.not_before turn.since turn.trace created started lease.boot_id lease.cgroups{} layer
	record.id record.name record.started record.ended record.status record.signal record.error.step record.error.message
	record.error.errno record.error.hint record.limit.name record.network.mode record.network.lost record.denials[].time
	record.denials[].kind record.enforced{} record.unenforced[] record.policy.name record.policy.sha256
	record.host.kernel record.host.cgroup`)
})

// maps are the objects whose keys vary.
var maps = set(`spec.labels lease.cgroups record.enforced`)

// set makes a set of words that blanks separate.
func set(words string) map[string]bool {
	all := map[string]bool{}
	for _, word := range strings.Fields(words) {
		all[word] = true
	}
	return all
}

// Redact returns a stored run, or a list of runs, indented and without everything that is
// not known to be harmless. Text that is not JSON is an error.
func Redact(stored []byte) ([]byte, error) {
	decoder := json.NewDecoder(bytes.NewReader(stored))
	decoder.UseNumber() // keeps numbers as they are written
	var value any
	if err := decoder.Decode(&value); err != nil {
		return nil, fmt.Errorf("cannot read it: %w", err)
	}
	if list, many := value.([]any); many {
		for i := range list {
			list[i] = redact("", list[i])
		}
	} else {
		value = redact("", value)
	}
	var out bytes.Buffer
	encoder := json.NewEncoder(&out)
	encoder.SetIndent("", "  ")
	encoder.SetEscapeHTML(false)
	err := encoder.Encode(value)
	return out.Bytes(), err
}

// redact replaces the strings below path that are not harmless. Numbers and booleans pass.
func redact(path string, value any) any {
	switch v := value.(type) {
	case map[string]any:
		for key, inner := range v {
			v[key] = redact(below(path, key), inner)
		}
	case []any:
		return redactList(path, v)
	case string:
		if !harmless()[path] {
			return leftOut
		}
	}
	return value
}

// below is the path of a key. The previous record has the form of a record.
func below(path, key string) string {
	switch {
	case maps[path]:
		return path + "{}"
	case path == "" && key == "previous":
		return "record"
	case path == "":
		return key
	}
	return path + "." + key
}

// redactList is redact for a list, whose elements have the path of the list and "[]".
func redactList(path string, list []any) any {
	switch path {
	// Lists with a rule of their own: of these a part is harmless.
	case "spec.command", "record.command":
		return program(list)
	case "spec.env":
		for i, entry := range list {
			text, _ := entry.(string)
			if name, _, named := strings.Cut(text, "="); named {
				list[i] = name + "=" + leftOut
			} else {
				list[i] = leftOut
			}
		}
		return list
	}
	for i := range list {
		list[i] = redact(path+"[]", list[i])
	}
	return list
}

// program keeps the command's first word.
func program(command []any) any {
	if len(command) == 0 {
		return command
	}
	first, isText := command[0].(string)
	if !isText {
		first = leftOut
	}
	if len(command) == 1 {
		return []any{first}
	}
	return []any{first, fmt.Sprintf("(%d arguments left out)", len(command)-1)}
}

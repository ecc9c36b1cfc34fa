package node

import (
	"bytes"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"strconv"
	"strings"
	"sync"

	"github.com/pelletier/go-toml/v2"

	"clove.run/clove/agent"
	"clove.run/clove/oci"
)

// Handler is a runtime as containerd knows it.
type Handler struct {
	Name   string // the handler of a RuntimeClass
	Binary string // clove-oci's absolute path on the node

	systemdCgroup *bool // from the file's imports; nil: the file's own setting
}

// The block's first and last line. The line break before the first one is part
// of the block: a file that does not end with one gets it, and loses it again.
const (
	blockBegin = "\n# BEGIN clove: written by clove node install, taken away by clove node uninstall\n"
	blockEnd   = "# END clove\n"
)

// bareKey is a name that needs no quotes in TOML.
var bareKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// Register returns text with h registered. A text that has h already is returned
// unchanged; the block of an earlier Register is replaced where it is. A text that
// cannot be extended without changing the meaning of the rest is refused (KindInvalid).
func Register(text []byte, h Handler) ([]byte, error) {
	if !bareKey().MatchString(h.Name) || h.Name == runcHandler {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "handler", Message: fmt.Sprintf("%q cannot be its name", h.Name),
			Hint: "use letters, digits, - and _, for example clove; runc is containerd's own"}
	}
	// Everything is computed on the text without the block, so that a second Register
	// compares with what the administrator wrote.
	before, after, err := split(text)
	if err != nil {
		return nil, err
	}
	bare := append(bytes.Clone(before), after...)
	old, err := parse(bare)
	if err != nil {
		return nil, err
	}
	if _, taken := old.runtimes()[h.Name]; taken {
		return nil, refused("remove it, or give clove's another name with --handler", "it has a handler "+h.Name+" that clove node install did not write", nil)
	}
	block, err := h.write(old)
	if err != nil {
		return nil, err
	}
	made := append(append(bytes.Clone(before), block...), after...)
	// The text is correct TOML only if its meaning is the old one plus the handler. An
	// inline table, for example, cannot be extended by a header below.
	if err := means(made, with(old, h.tables(old))); err != nil {
		return nil, refused("write its tables as [plugins.\"…\"] headers, not inline", "it cannot be extended at its end", err)
	}
	return made, nil
}

// Unregister returns text without the block, byte for byte the text that Register was
// given. A text without a block is returned unchanged. A block that was changed, or
// that further keys belong to, is refused (KindInvalid).
func Unregister(text []byte) ([]byte, error) {
	before, after, err := split(text)
	if err != nil || len(before) == len(text) {
		return text, err
	}
	bare := append(bytes.Clone(before), after...)
	left, err := parse(bare)
	if err != nil {
		return nil, err
	}
	block := text[len(before) : len(text)-len(after)]
	added := table{}
	if err := toml.Unmarshal(block, &added); err != nil {
		return nil, refused("remove the lines between clove's markers by hand", "clove's block was changed", err)
	}
	delete(added, "version")
	// Keys behind the block that have no header of their own belong to its last table.
	// Without the block they would silently belong to another one. So the parts must
	// add up to the whole.
	whole := at(merge(left.root, added))
	if len(left.root) == 0 {
		whole["version"] = int64(newVersion)
	}
	if err := means(text, whole); err != nil {
		return nil, refused("give what stands behind clove's block a [table] of its own, or remove the block by hand", "clove's block cannot be taken away alone", err)
	}
	return bare, nil
}

// split returns what is before and behind the block; without a block all of it is
// before.
func split(text []byte) (before, after []byte, err error) {
	begins, ends := bytes.Count(text, []byte(blockBegin)), bytes.Count(text, []byte(blockEnd))
	if begins == 0 && ends == 0 {
		return text, nil, nil
	}
	before, rest, _ := bytes.Cut(text, []byte(blockBegin))
	_, after, closed := bytes.Cut(rest, []byte(blockEnd))
	// Half a block, or two, cannot be removed without guessing which lines are clove's.
	if begins != 1 || ends != 1 || !closed {
		return nil, nil, refused("restore the file's backup, or remove the lines of clove by hand", "clove's block in it is incomplete", nil)
	}
	return before, after, nil
}

// tables are the runtimes that h adds to c. containerd passes on only annotations that
// are listed: pod_annotations from the pod, where Kubernetes has them, and
// container_annotations from the CRI's container.
func (h Handler) tables(c config) table {
	options := table{"BinaryName": h.Binary}
	systemd := h.systemdCgroup
	if systemd == nil {
		systemd = c.systemdCgroup()
	}
	if systemd != nil {
		options["SystemdCgroup"] = *systemd
	}
	added := table{h.Name: table{
		"runtime_type":          runcType,
		"pod_annotations":       []any{oci.Prefix + "*"},
		"container_annotations": []any{oci.Prefix + "*"},
		"options":               options,
	}}
	// Until containerd 2.0, a file that names one runtime replaces the built-in list:
	// without this entry runc would be gone.
	if len(c.runtimes()) == 0 {
		added[runcHandler] = table{"runtime_type": runcType}
	}
	return added
}

// write renders the block that adds h's tables to c.
func (h Handler) write(c config) ([]byte, error) {
	added := h.tables(c)
	// The TOML library quotes paths: its rules are not Go's.
	options, err := toml.Marshal(at(added, h.Name, "options"))
	if err != nil {
		return nil, agent.Failed("containerd's configuration", err)
	}
	var text strings.Builder
	text.WriteString(blockBegin)
	// An empty file has no version, and containerd would read the block as version 1.
	if len(c.root) == 0 {
		fmt.Fprintf(&text, "version = %d\n", newVersion)
	}
	header := "plugins." + strconv.Quote(c.plugin) + ".containerd.runtimes."
	if added[runcHandler] != nil {
		fmt.Fprintf(&text, "[%s%s]\nruntime_type = %q\n", header, runcHandler, runcType)
	}
	fmt.Fprintf(&text, "[%s%s]\nruntime_type = %q\npod_annotations = [%q]\ncontainer_annotations = [%[4]q]\n[%[1]s%[2]s.options]\n%[5]s%[6]s",
		header, h.Name, runcType, oci.Prefix+"*", options, blockEnd)
	return []byte(text.String()), nil
}

// with is the meaning of c with further runtimes.
func with(c config, added table) table {
	root := merge(c.root, table{"plugins": table{c.plugin: table{"containerd": table{"runtimes": added}}}}).(table)
	root["version"] = c.version
	return root
}

// merge lays tables over tables and changes neither, because both are compared later.
func merge(below, above any) any {
	lower, isTable := below.(table)
	upper, both := above.(table)
	if !isTable || !both {
		return above
	}
	merged := maps.Clone(lower)
	for key, value := range upper {
		if existing, there := merged[key]; there {
			value = merge(existing, value)
		}
		merged[key] = value
	}
	return merged
}

// means checks that a text has exactly the meaning that it should have.
func means(text []byte, want table) error {
	got := table{}
	if err := toml.Unmarshal(text, &got); err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("its meaning would change")
	}
	return nil
}

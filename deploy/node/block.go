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
	Name   string // what a RuntimeClass calls handler
	Binary string // clove-oci's absolute path on the node

	systemdCgroup *bool // as the file's imports have it; nil: as the file has it
}

// The block's first and last line. The line break before the first one is part
// of the block: a file that does not end with one gets it, and loses it again.
const (
	blockBegin = "\n# BEGIN clove: written by clove node install, taken away by clove node uninstall\n"
	blockEnd   = "# END clove\n"
)

// bareKey is a name that needs no quotes in TOML.
var bareKey = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9_-]+$`) })

// Register returns text with h registered. A text that has h already comes
// back as it is; the block of an earlier Register is replaced where it stands. What
// cannot be extended so that everything else keeps its meaning is refused
// (KindInvalid).
func Register(text []byte, h Handler) ([]byte, error) {
	if !bareKey().MatchString(h.Name) || h.Name == runcHandler {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "handler", Message: fmt.Sprintf("%q cannot be its name", h.Name),
			Hint: "use letters, digits, - and _, for example clove; runc is containerd's own"}
	}
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
	if err := means(made, with(old, h.tables(old))); err != nil {
		return nil, refused("write its tables as [plugins.\"…\"] headers, not inline", "it cannot be extended at its end", err)
	}
	return made, nil
}

// Unregister returns text without the block, which is the text that Register
// was given, byte by byte. A text without a block comes back as it is. A block that
// somebody changed, or hung more keys on, is refused (KindInvalid).
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
	// Keys behind the block without a header of their own belong to its last
	// table, and would silently move to another.
	whole := at(merge(left.root, added))
	if len(left.root) == 0 {
		whole["version"] = int64(newVersion)
	}
	if err := means(text, whole); err != nil {
		return nil, refused("give what stands behind clove's block a [table] of its own, or remove the block by hand", "clove's block cannot be taken away alone", err)
	}
	return bare, nil
}

// split returns what is before and behind the block; all is before where there
// is none.
func split(text []byte) (before, after []byte, err error) {
	begins, ends := bytes.Count(text, []byte(blockBegin)), bytes.Count(text, []byte(blockEnd))
	if begins == 0 && ends == 0 {
		return text, nil, nil
	}
	before, rest, _ := bytes.Cut(text, []byte(blockBegin))
	_, after, closed := bytes.Cut(rest, []byte(blockEnd))
	if begins != 1 || ends != 1 || !closed {
		return nil, nil, refused("restore the file's backup, or remove the lines of clove by hand", "clove's block in it is not whole", nil)
	}
	return before, after, nil
}

// tables are the runtimes that h adds to c. The annotations are handed on from
// the pod, which is where Kubernetes has them, and from the container.
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
	// A file that names one runtime names all of them, until containerd 2.0:
	// without this, the built-in runc would be gone.
	if len(c.runtimes()) == 0 {
		added[runcHandler] = table{"runtime_type": runcType}
	}
	return added
}

// write renders the block that adds h's tables to c.
func (h Handler) write(c config) ([]byte, error) {
	added := h.tables(c)
	// Quoting as TOML has it, which is not Go's; its keys come in order.
	options, err := toml.Marshal(at(added, h.Name, "options"))
	if err != nil {
		return nil, agent.Failed("containerd's configuration", err)
	}
	var text strings.Builder
	text.WriteString(blockBegin)
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

// with is what c means with further runtimes.
func with(c config, added table) table {
	root := merge(c.root, table{"plugins": table{c.plugin: table{"containerd": table{"runtimes": added}}}}).(table)
	root["version"] = c.version
	return root
}

// merge lays tables over tables, and changes neither.
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

// means holds a text to what it is to mean.
func means(text []byte, want table) error {
	got := table{}
	if err := toml.Unmarshal(text, &got); err != nil {
		return err
	}
	if !reflect.DeepEqual(got, want) {
		return fmt.Errorf("it would come to mean something else")
	}
	return nil
}

package node

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"

	"github.com/pelletier/go-toml/v2"

	"clove.run/clove/agent"
)

// table is a part of a configuration, as the TOML library returns it.
type table = map[string]any

// criPlugins maps a configuration's version to the name of the plugin that has the
// runtimes. Version 2 is that of containerd 1.x, which 2.x reads too. Version 3 came
// with 2.0 and version 4 with 2.3; the runtimes are in the same place in both.
var criPlugins = map[int64]string{
	2: "io.containerd.grpc.v1.cri",
	3: "io.containerd.cri.v1.runtime",
	4: "io.containerd.cri.v1.runtime",
}

// newVersion is the version of a configuration that clove creates: every containerd
// from 1.3 on reads it.
const newVersion = 2

// runcHandler is containerd's default handler, and runcType the shim of runc, which
// also runs clove-oci.
const runcHandler, runcType = "runc", "io.containerd.runc.v2"

// config is a parsed configuration.
type config struct {
	root    table
	version int64
	plugin  string // of criPlugins
}

// refused is an error about containerd's configuration. The administrator can always solve it.
func refused(hint, format string, err error) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: "containerd's configuration", Message: format, Hint: hint, Err: err}
}

// parse reads a configuration, or returns the reason why clove does not change it.
func parse(text []byte) (config, error) {
	c := config{root: table{}, version: newVersion}
	if err := toml.NewDecoder(bytes.NewReader(text)).Decode(&c.root); err != nil {
		return c, refused("let `containerd config dump` show what is wrong with it", "it is not TOML", err)
	}
	// A file without a version is of version 1, which has no named plugins.
	if len(c.root) > 0 {
		c.version, _ = c.root["version"].(int64)
	}
	c.plugin = criPlugins[c.version]
	if c.plugin == "" {
		return c, refused("`containerd config migrate` writes it in a version that has named plugins; clove knows 2, 3 and 4",
			"its version is not one that clove knows", nil)
	}
	for _, disabled := range asList(c.root["disabled_plugins"]) {
		if disabled == "cri" || disabled == c.plugin {
			return c, refused("take it out of disabled_plugins first: the kubelet talks to that plugin", "the CRI plugin is disabled", nil)
		}
	}
	return c, nil
}

// at follows keys through tables. It returns nil where there is nothing, or something
// else than a table.
func at(value any, keys ...string) table {
	for _, key := range keys {
		inner, _ := value.(table)
		value = inner[key]
	}
	found, _ := value.(table)
	return found
}

func asList(value any) []any {
	list, _ := value.([]any)
	return list
}

func (c config) criPlugin() table { return at(c.root, "plugins", c.plugin) }

func (c config) runtimes() table { return at(c.criPlugin(), "containerd", "runtimes") }

// systemdCgroup is the setting of the node's own handler. A pod whose runtime disagrees
// with the kubelet about the cgroup driver does not start. nil means that nothing is
// written, and containerd's default holds for both.
func (c config) systemdCgroup() *bool {
	name, _ := at(c.criPlugin(), "containerd")["default_runtime_name"].(string)
	for _, handler := range []string{name, runcHandler} {
		runtime := at(c.runtimes(), handler)
		if kind, written := runtime["runtime_type"]; written && kind != runcType {
			continue
		}
		if value, written := at(runtime, "options")["SystemdCgroup"].(bool); written {
			return &value
		}
	}
	return nil
}

// readImports parses the files that c imports, in containerd's order. Before containerd
// 2.0 an imported plugin replaces that of the main file as a whole (containerd's issue
// 5837), and clove's handler with it: such an import is refused. A file of version 2
// may belong to either containerd.
func (c config) readImports(dir string) ([]config, error) {
	var all []config
	for _, pattern := range asList(c.root["imports"]) {
		name, _ := pattern.(string)
		if !filepath.IsAbs(name) {
			name = filepath.Join(dir, name)
		}
		files, err := filepath.Glob(name)
		if err != nil {
			return nil, refused("write a pattern that containerd understands", "cannot read its imports", err)
		}
		// The last import counts, so the order matters.
		slices.Sort(files)
		for _, file := range files {
			imported := config{root: table{}, plugin: c.plugin}
			text, err := os.ReadFile(file)
			if err == nil {
				err = toml.Unmarshal(text, &imported.root)
			}
			if err != nil {
				return nil, refused("mend or remove the import", "cannot read "+file+", which it imports", err)
			}
			if c.version == newVersion && imported.criPlugin() != nil {
				return nil, refused("name that file with --containerd-config", file+", which it imports, may replace the whole CRI plugin", nil)
			}
			if version, written := imported.root["version"].(int64); written && criPlugins[version] != "" {
				imported.plugin = criPlugins[version]
			}
			all = append(all, imported)
		}
	}
	return all, nil
}

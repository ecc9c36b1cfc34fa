package node

import (
	"errors"
	"os"
	"path/filepath"
	"reflect"
	"strings"
	"testing"

	"github.com/pelletier/go-toml/v2"

	"clove.run/clove/agent"
)

var clove = Handler{Name: "clove", Binary: "/opt/clove/bin/clove-oci"}

// systemd is the configuration after the steps in kubeadm's documents: a default file with one
// word changed.
func systemd(t *testing.T, name string) string {
	t.Helper()
	text := readFile(t, filepath.Join("testdata", name))
	if changed := strings.Replace(text, "SystemdCgroup = false", "SystemdCgroup = true", 1); changed != text {
		return changed
	}
	return text + "\n[plugins.'io.containerd.cri.v1.runtime'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n"
}

func readFile(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// decoded returns the meaning of a text.
func decoded(t *testing.T, text string) table {
	t.Helper()
	root := table{}
	if err := toml.Unmarshal([]byte(text), &root); err != nil {
		t.Fatalf("%v in\n%s", err, text)
	}
	return root
}

const (
	oneX = "io.containerd.grpc.v1.cri"
	twoX = "io.containerd.cri.v1.runtime"
	minimal2,
	minimal3 = "version = 2\n", "version = 3\n"
)

// configurations are texts with the result that Register must produce. The files of testdata
// are written by these versions themselves, or installed by Debian.
func configurations(t *testing.T) []struct {
	name, text, plugin string
	systemd            any // the value for the new handler
	runc               bool
} {
	type row = struct {
		name, text, plugin string
		systemd            any
		runc               bool
	}
	rows := []row{
		{"none", "", oneX, nil, true},
		{"only comments", "# nothing here\n\n", oneX, nil, true},
		{"Debian's 1.6", readFile(t, "testdata/debian-1.6.toml"), oneX, nil, true},
		{"default of 1.6", readFile(t, "testdata/default-1.6.toml"), oneX, false, false},
		{"default of 1.7", readFile(t, "testdata/default-1.7.toml"), oneX, false, false},
		{"default of 2.0", readFile(t, "testdata/default-2.0.toml"), twoX, nil, false},
		{"default of 2.1", readFile(t, "testdata/default-2.1.toml"), twoX, nil, false},
		{"default of 2.4", readFile(t, "testdata/default-2.4.toml"), twoX, false, false},
		{"systemd in 2.4", systemd(t, "default-2.4.toml"), twoX, true, false},
		{"systemd in 1.6", systemd(t, "default-1.6.toml"), oneX, true, false},
		{"systemd in 1.7", systemd(t, "default-1.7.toml"), oneX, true, false},
		{"version 2", minimal2, oneX, nil, true},
		{"version 3", minimal3, twoX, nil, true},
		{"version 4", "version = 4\n", twoX, nil, true},
		{"only runc's cgroups", "version = 3\n[plugins.'" + twoX + "'.containerd.runtimes.runc.options]\nSystemdCgroup = true\n", twoX, true, false},
		{"no line break at the end", "version = 3\nroot = '/data'", twoX, nil, true},
		{"another handler is the default", "version = 2\n[plugins.\"" + oneX + "\".containerd]\ndefault_runtime_name = 'mine'\n" +
			"runtimes.mine = {runtime_type = 'io.containerd.runc.v2', options = {SystemdCgroup = true}}\n", oneX, true, false},
		{"the default is no runc", "version = 2\n[plugins.\"" + oneX + "\".containerd]\ndefault_runtime_name = 'kata'\n" +
			"[plugins.\"" + oneX + "\".containerd.runtimes.kata]\nruntime_type = 'io.containerd.kata.v2'\n" +
			"[plugins.\"" + oneX + "\".containerd.runtimes.runc]\nruntime_type = 'io.containerd.runc.v2'\noptions = {SystemdCgroup = true}\n", oneX, true, false},
	}
	return rows
}

func TestRegisterAddsTheHandlerAndNothingElse(t *testing.T) {
	for _, row := range configurations(t) {
		made, err := Register([]byte(row.text), clove)
		if err != nil {
			t.Errorf("%s: %v", row.name, err)
			continue
		}
		if !strings.HasPrefix(string(made), row.text) {
			t.Errorf("%s: what was there is not there as it was:\n%s", row.name, made)
		}
		runtimes := at(decoded(t, string(made)), "plugins", row.plugin, "containerd", "runtimes")
		options := table{"BinaryName": clove.Binary}
		if row.systemd != nil {
			options["SystemdCgroup"] = row.systemd
		}
		want := table{"runtime_type": "io.containerd.runc.v2", "options": options,
			"pod_annotations": []any{"run.clove.*"}, "container_annotations": []any{"run.clove.*"}}
		if !reflect.DeepEqual(runtimes["clove"], want) {
			t.Errorf("%s: the handler is %v", row.name, runtimes["clove"])
		}
		if added := strings.Contains(string(made)[len(row.text):], ".runc]"); added != row.runc {
			t.Errorf("%s: runc was added: %t", row.name, added)
		}
		before := at(decoded(t, row.text), "plugins", row.plugin, "containerd", "runtimes")
		for name, runtime := range before {
			if !reflect.DeepEqual(runtimes[name], runtime) {
				t.Errorf("%s: %s changed to %v", row.name, name, runtimes[name])
			}
		}
	}
}

func TestASecondTimeChangesNothingAndUnregisterRestores(t *testing.T) {
	for _, row := range configurations(t) {
		once, err := Register([]byte(row.text), clove)
		if err != nil {
			t.Fatal(err)
		}
		if twice, err := Register(once, clove); err != nil || string(twice) != string(once) {
			t.Errorf("%s: the second time: %v\n%s", row.name, err, twice)
		}
		if back, err := Unregister(once); err != nil || string(back) != row.text {
			t.Errorf("%s: back is %v\n%q", row.name, err, back)
		}
		if back, err := Unregister([]byte(row.text)); err != nil || string(back) != row.text {
			t.Errorf("%s: without a block: %v\n%q", row.name, err, back)
		}
	}
}

// TestTheBlockFollowsTheFile: another program, another cgroup driver, more tables after the
// block.
func TestTheBlockFollowsTheFile(t *testing.T) {
	text := readFile(t, "testdata/default-1.7.toml")
	once, err := Register([]byte(text), clove)
	if err != nil {
		t.Fatal(err)
	}
	behind := "\n[plugins.\"" + oneX + "\".containerd.runtimes.other]\nruntime_type = 'io.containerd.runc.v2'\n"
	edited := strings.Replace(string(once), "SystemdCgroup = false", "SystemdCgroup = true", 1) + behind
	moved, err := Register([]byte(edited), Handler{Name: "clove-next", Binary: "/usr/bin/clove-oci"})
	if err != nil {
		t.Fatal(err)
	}
	runtimes := at(decoded(t, string(moved)), "plugins", oneX, "containerd", "runtimes")
	if options := at(runtimes, "clove-next", "options"); options["SystemdCgroup"] != true || options["BinaryName"] != "/usr/bin/clove-oci" {
		t.Errorf("%v", options)
	}
	if runtimes["clove"] != nil || runtimes["other"] == nil || strings.Count(string(moved), "BEGIN clove") != 1 || !strings.HasSuffix(string(moved), behind) {
		t.Errorf("\n%s", moved[len(text):])
	}
	back, err := Unregister(moved)
	if err != nil || string(back) != strings.Replace(text, "SystemdCgroup = false", "SystemdCgroup = true", 1)+behind {
		t.Errorf("%v\n%s", err, back)
	}
}

func TestPathsAreQuoted(t *testing.T) {
	for _, path := range []string{`/opt/it's/clove "oci"`, "/opt/tab\tand\\back", "/opt/ü"} {
		made, err := Register([]byte(minimal3), Handler{Name: "clove", Binary: path})
		if err != nil {
			t.Fatal(err)
		}
		if got := at(decoded(t, string(made)), "plugins", twoX, "containerd", "runtimes", "clove", "options")["BinaryName"]; got != path {
			t.Errorf("%q became %q", path, got)
		}
	}
}

func TestWhatCannotBeExtendedIsRefused(t *testing.T) {
	for name, row := range map[string]struct{ text, want string }{
		"no TOML":                {"version = \n", "it is not TOML"},
		"version 1":              {"version = 1\n", "its version"},
		"no version":             {"root = '/var/lib/containerd'\n", "its version"},
		"version as text":        {"version = '2'\n", "its version"},
		"a version of tomorrow":  {"version = 5\n", "its version"},
		"CRI disabled":           {"version = 2\ndisabled_plugins = ['cri']\n", "the CRI plugin is disabled"},
		"CRI disabled by name":   {"version = 3\ndisabled_plugins = ['" + twoX + "']\n", "the CRI plugin is disabled"},
		"plugins inline":         {"version = 2\nplugins = {\"" + oneX + "\" = {containerd = {snapshotter = 'overlayfs'}}}\n", "it cannot be extended"},
		"runtimes inline":        {"version = 2\n[plugins.\"" + oneX + "\".containerd]\nruntimes = {runc = {runtime_type = 'io.containerd.runc.v2'}}\n", "it cannot be extended"},
		"another clove":          {"version = 2\n[plugins.\"" + oneX + "\".containerd.runtimes.clove]\nruntime_type = 'x'\n", "it has a handler clove"},
		"half a block":           {"version = 2\n" + blockBegin, "is incomplete"},
		"the other half":         {"version = 2\n" + blockEnd, "is incomplete"},
		"two blocks":             {"version = 2\n" + blockBegin + blockEnd + blockBegin + blockEnd, "is incomplete"},
		"a block the wrong way":  {"version = 2\n" + blockEnd + blockBegin, "is incomplete"},
		"runtimes are no table":  {"version = 2\n[plugins.\"" + oneX + "\".containerd]\nruntimes = 3\n", "it cannot be extended"},
		"the plugin is no table": {"version = 3\n[plugins]\n\"" + twoX + "\" = 'x'\n", "it cannot be extended"},
	} {
		made, err := Register([]byte(row.text), clove)
		var known *agent.Error
		if !errors.As(err, &known) || known.Hint == "" || !strings.Contains(err.Error(), row.want) || made != nil {
			t.Errorf("%s: %v\n%s", name, err, made)
		}
	}
	for _, name := range []string{"", "runc", "a.b", "a b", "ä", `"`} {
		if _, err := Register([]byte(minimal2), Handler{Name: name, Binary: "/x"}); err == nil {
			t.Errorf("%q is a handler's name", name)
		}
	}
}

// TestABlockThatHoldsMoreIsNotTakenAway: lines after it without a header would become part of
// another table.
func TestABlockThatHoldsMoreIsNotTakenAway(t *testing.T) {
	text := readFile(t, "testdata/default-2.1.toml")
	made, err := Register([]byte(text), clove)
	if err != nil {
		t.Fatal(err)
	}
	for name, changed := range map[string]string{
		"a line behind it":  string(made) + "Root = '/run/other'\n",
		"not TOML any more": strings.Replace(string(made), "pod_annotations", "pod_annotations =", 1),
		"no end":            strings.TrimSuffix(string(made), blockEnd),
	} {
		if back, err := Unregister([]byte(changed)); err == nil {
			t.Errorf("%s: became\n%s", name, back)
		}
	}
}

package daemon

import (
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func load(t *testing.T, text string) (Config, error) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "clove.yaml")
	must(t, os.WriteFile(path, []byte(text), 0o600))
	return LoadConfig(path)
}

func TestConfigOverDefaults(t *testing.T) {
	t.Parallel()
	config, err := load(t, "memory_share: 0.5\nusers:\n  runs: 3\nlog_level: debug\nlog_cap: 1M\n")
	must(t, err)
	want := DefaultConfig()
	want.MemoryShare, want.Users.Runs, want.LogLevel, want.LogCap = 0.5, 3, "debug", "1M"
	if !reflect.DeepEqual(config, want) || config.LogCapBytes() != 1<<20 {
		t.Errorf("%+v", config)
	}
	if config, err := load(t, ""); err != nil || !reflect.DeepEqual(config, DefaultConfig()) {
		t.Errorf("an empty file: %+v, %v", config, err)
	}
}

func TestConfigRefuses(t *testing.T) {
	t.Parallel()
	for text, says := range map[string]string{
		"memry_share: 1":               "memry_share",
		"users: {memory: 1M}":          "less than any run takes",
		"users: {disk: 1M}":            "less than any run takes",
		"users: {run: 1}":              "run",
		"socket: x":                    "absolute",
		"memory_share: -1":             "memory_share",
		"memory_share: eleven":         "memory_share: text stands where a number belongs",
		"log_cap: 64":                  "log_cap: the number stands where text belongs",
		"users: 3":                     "line 1, column 8: users: the number stands",
		"- a":                          "line 1, column 1: a list stands where a map of keys",
		"metrics_address: 0.0.0.0:1":   "not a loopback",
		"metrics_address: :9464":       "metrics_address",
		"metrics_address: localhost:1": "metrics_address",
		"metrics_address: 127.0.0.1":   "metrics_address",
		"metrics_address: 10.1.2.3:9":  "not a loopback",
		"metrics_address: '[::]:9'":    "not a loopback",
		"metrics_socket: metrics":      "absolute",
		"starts_at_once: -1":           "starts_at_once",
		"log_cap: 1k":                  "log_cap",
		"log_cap: 1K":                  "log_cap",
		"log_level: loud":              "log_level",
		"users: {memory: lots}":        "users.memory",
		"users: {runs: -1}":            "users.runs",
		"users: {allow: public}":       "users.allow: text stands where a list belongs",
		"users: {allow: [metadata]}":   "users.allow: cannot allow metadata",
		"users: {allow: ['*']}":        "write public",
		"group: a\ngroup: b":           "group",
		"[":                            "",
		"log_cap: 9999999999999T":      "log_cap",
	} {
		_, err := load(t, text)
		if err == nil || !strings.Contains(err.Error(), says) || strings.Contains(err.Error(), "Go struct") || agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%q: %v", text, err)
		}
	}
	if _, err := LoadConfig(filepath.Join(t.TempDir(), "absent")); err == nil {
		t.Error("a file that was named may be absent")
	}
}

// TestExampleShowsEveryField: docs/clove.yaml has every field with its default.
func TestExampleShowsEveryField(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../docs/clove.yaml")
	must(t, err)
	if config, err := load(t, string(text)); err != nil || !reflect.DeepEqual(config, DefaultConfig()) {
		t.Errorf("%v, %+v", err, config)
	}
	var walk func(reflect.Type)
	walk = func(typ reflect.Type) {
		for i := range typ.NumField() {
			f := typ.Field(i)
			if name := f.Tag.Get("json"); name == "" || !regexp.MustCompile(`(?m)^ *`+name+":").Match(text) {
				t.Errorf("%s (%q) is not shown", f.Name, name)
			}
			if f.Type.Kind() == reflect.Struct {
				walk(f.Type)
			}
		}
	}
	walk(reflect.TypeFor[Config]())
}

func TestReloadKeepsWhatWorks(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	path := filepath.Join(t.TempDir(), "clove.yaml")
	r.d.options.ConfigFile = path
	must(t, os.WriteFile(path, []byte("starts_at_once: 7"), 0o600))
	must(t, r.d.Reload())
	must(t, os.WriteFile(path, []byte("starts_at_once: nonsense"), 0o600))
	if err := r.d.Reload(); err == nil || r.d.config().StartsAtOnce != 7 {
		t.Errorf("%v, %+v", err, r.d.config())
	}
}

// TestApproversAreUsers: a name and a number are the same, with and without quotes, and what is neither is refused.
func TestApproversAreUsers(t *testing.T) {
	t.Parallel()
	c, err := load(t, "approvers: [root, 4294967294, \"12\"]\n")
	if want := (Approvers{0, 4294967294, 12}); err != nil || !slices.Equal(c.Approvers, want) || !c.approves(12) || c.approves(13) {
		t.Errorf("%v, %v", c.Approvers, err)
	}
	for _, text := range []string{"[no-such-user]", "[-1]", "[1.5]", "[4294967296]", "root", "[[root]]"} {
		if c, err := load(t, "approvers: "+text+"\n"); err == nil {
			t.Errorf("%s: %v", text, c.Approvers)
		}
	}
}

package main

import (
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"
	"golang.org/x/sys/unix"

	"clove.run/clove/oci"
	"clove.run/clove/oci/container"
)

// bundleOf returns a directory with this config.json.
func bundleOf(t *testing.T, config string) string {
	t.Helper()
	bundle := t.TempDir()
	t.Chdir(bundle) // changes back at the end: create makes the bundle the current directory
	if err := os.WriteFile(filepath.Join(bundle, configName), []byte(config), 0o644); err != nil {
		t.Fatal(err)
	}
	return bundle
}

func TestABundleThatMakesNoSenseIsRefused(t *testing.T) {
	for config, want := range map[string]string{
		"":                                     "EOF",
		"null":                                 "config cannot be null",
		"[]":                                   "json: cannot unmarshal array into Go value of type specs.Spec",
		"{}":                                   "process property must not be empty",
		`{"process":{}}`:                       "Cwd property must not be empty",
		`{"process":{"cwd":"a","args":["a"]}}`: "Cwd must be an absolute path",
		`{"process":{"cwd":"/"}}`:              "args must not be empty",
		// Else another file's name would be passed on.
		"{\"process\":{\"cwd\":\"/\",\"args\":[\"rm\",\"bad\xff\"]}}": "cannot read config.json: it has bytes that are not UTF-8, which JSON cannot carry: rename what it names",
		`{"process":{"cwd":"/","args":["rm","bad\udcff"]}}`:           "cannot read config.json: it has surrogates that are not in pairs, which JSON cannot carry: rename what it names",
		`{"process":{"cwd":"x","args":["rm","bad\ud83d\ude00"]}}`:     "Cwd must be an absolute path", // a whole pair is read
	} {
		root := t.TempDir()
		got := try(t, "--root", root, "create", "--bundle", bundleOf(t, config), "one")
		if got.status != 1 || got.logged != "clove-oci create failed: "+want {
			t.Errorf("%q: %+v", config, got)
		}
	}
	empty := t.TempDir()
	t.Chdir(empty)
	if got := try(t, "run", "one"); got.logged != "clove-oci run failed: JSON specification file config.json not found" {
		t.Errorf("%+v", got)
	}
}

// TestABadAnnotationFailsCreate: the error names the annotation and what to write, on one
// line, and nothing was made.
func TestABadAnnotationFailsCreate(t *testing.T) {
	spec := container.Example(false)
	for key, value := range map[string]string{
		oci.AnnotationTimeout: "tomorrow", oci.AnnotationMemory: "much", oci.AnnotationNetworkMode: "host", oci.Prefix + "sandbox": "yes",
	} {
		spec.Annotations = map[string]string{key: value}
		config, err := json.Marshal(spec)
		if err != nil {
			t.Fatal(err)
		}
		root := filepath.Join(t.TempDir(), "root")
		got := try(t, "--root", root, "create", "--bundle", bundleOf(t, string(config)), "one")
		if got.status != 1 || !strings.HasPrefix(got.logged, "clove-oci create failed: annotation "+key+": ") || strings.Count(got.err, "\n") != 1 {
			t.Errorf("%s: %+v", key, got)
		}
		if _, err := os.Stat(root); !os.IsNotExist(err) {
			t.Errorf("%s: the root is there: %v", key, err)
		}
	}
}

func TestSignalsHaveNamesAndNumbers(t *testing.T) {
	for text, want := range map[string]unix.Signal{
		"": unix.SIGTERM, "9": 9, "0": 0, "KILL": 9, "SIGKILL": 9, "kill": 9, "sigkill": 9, "Term": 15, "USR1": unix.SIGUSR1, "64": 64,
	} {
		if got, err := parseSignal(text); err != nil || got != want {
			t.Errorf("%q is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"KILLED", "SIG", " ", "9x", "SIGSIGKILL"} {
		if _, err := parseSignal(text); err == nil || !strings.HasPrefix(err.Error(), "unknown signal ") {
			t.Errorf("%q: %v", text, err)
		}
	}
}

// TestTheNodeSaysWhereRecordsGo: by a flag or by clove-oci's own environment.
func TestTheNodeSaysWhereRecordsGo(t *testing.T) {
	here := t.TempDir()
	t.Chdir(here)
	for name, row := range map[string]struct {
		flag, state, want string
	}{
		"neither":       {"", "", oci.RecordsDir},
		"flag":          {"/records", "", "/records"},
		"environment":   {"", "/state", "/state/records"},
		"both":          {"/records", "/state", "/records"},
		"relative flag": {"r", "", filepath.Join(here, "r")},
		"relative":      {"", "s", filepath.Join(here, "s/records")},
	} {
		t.Setenv(stateVariable, row.state)
		set := flag.NewFlagSet("", flag.ContinueOnError)
		set.String(flagRecords, row.flag, "")
		if got, err := recordsDir(cli.NewContext(nil, set, nil)); got != row.want || err != nil {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}

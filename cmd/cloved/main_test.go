package main

import (
	"errors"
	"flag"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/daemon"
	"clove.run/clove/runtime"
)

func TestOptions(t *testing.T) {
	for _, name := range []string{"CLOVE_ROOT", "CLOVE_RUN_DIR", "CLOVE_SOCKET"} {
		t.Setenv(name, "")
	}
	here, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	standard := options{root: runtime.DefaultPaths.State, runDir: runtime.DefaultPaths.Run, config: daemon.DefaultConfigFile}
	for _, c := range []struct {
		name string
		args []string
		env  map[string]string
		want func(*options)
	}{
		{"defaults", nil, nil, func(*options) {}},
		{"flags", []string{"--root", "/r", "--run-dir=/d", "--config", "c.yaml", "--socket", "/s"}, nil,
			func(o *options) { *o = options{root: "/r", runDir: "/d", config: "c.yaml", socket: "/s"} }},
		{"environment", nil, map[string]string{"CLOVE_ROOT": "/r", "CLOVE_RUN_DIR": "/d", "CLOVE_SOCKET": "/s"},
			func(o *options) { o.root, o.runDir, o.socket = "/r", "/d", "/s" }},
		{"flags before the environment", []string{"--root", "/flag"}, map[string]string{"CLOVE_ROOT": "/r"}, func(o *options) { o.root = "/flag" }},
		{"relative", []string{"--root", "r"}, nil, func(o *options) { o.root = filepath.Join(here, "r") }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, value := range c.env {
				t.Setenv(name, value)
			}
			want := standard
			c.want(&want)
			got, err := readOptions(c.args, io.Discard)
			if err != nil || got != want {
				t.Errorf("got %+v, %v; want %+v", got, err, want)
			}
		})
	}
}

func TestOptionsRefuse(t *testing.T) {
	var out strings.Builder
	if _, err := readOptions([]string{"--help"}, &out); !errors.Is(err, flag.ErrHelp) {
		t.Errorf("%v", err)
	}
	// The manual page is written by hand, and names every flag.
	page, err := os.ReadFile("../../integration/package/cloved.8")
	if err != nil {
		t.Fatal(err)
	}
	flags := 0
	for line := range strings.Lines(out.String()) {
		if name, found := strings.CutPrefix(line, "  -"); found {
			flags++
			if name, _, _ = strings.Cut(strings.TrimSpace(name), " "); !strings.Contains(string(page), `\-\-`+strings.ReplaceAll(name, "-", `\-`)+`\fR`) {
				t.Errorf("cloved.8 does not name --%s", name)
			}
		}
	}
	if flags == 0 {
		t.Errorf("help shows no flag: %s", out.String())
	}
	if _, err := readOptions([]string{"--no-such"}, io.Discard); err == nil {
		t.Error("a flag that does not exist")
	}
	if _, err := readOptions([]string{"start"}, io.Discard); agent.KindOf(err) != agent.KindInvalid || agent.FailureOf(err).Hint == "" {
		t.Errorf("%v", err)
	}
}

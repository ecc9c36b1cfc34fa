package main

import (
	"bytes"
	"errors"
	"flag"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
)

func TestCommandLine(t *testing.T) {
	t.Setenv("CLOVE_ROOT", "state")
	t.Setenv("CLOVE_RUN_DIR", "")
	var out bytes.Buffer
	o, err := readOptions([]string{"--run-dir=/r", "--config", "/c.yaml"}, &out)
	if err != nil || !filepath.IsAbs(o.root) || filepath.Base(o.root) != "state" || o.runDir != "/r" || o.config != "/c.yaml" || out.Len() != 0 {
		t.Errorf("%+v, %v, %q", o, err, out.String())
	}
	for line, says := range map[string]string{"extra": "no arguments", "--bogus": "bogus", "--config": "config"} {
		if _, err := readOptions([]string{line}, &out); agent.KindOf(err) != agent.KindInvalid || err == nil || !strings.Contains(err.Error(), says) {
			t.Errorf("%s: %v", line, err)
		}
	}
	for line, says := range map[string]string{"--help": "-run-dir", "-h": "-config", "--version": "cloved " + version} {
		out.Reset()
		if _, err := readOptions([]string{line}, &out); !errors.Is(err, flag.ErrHelp) || !strings.Contains(out.String(), says) {
			t.Errorf("%s: %v, %q", line, err, out.String())
		}
	}
}

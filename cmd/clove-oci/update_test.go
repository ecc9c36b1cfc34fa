package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/urfave/cli/v2"

	"clove.run/clove/oci/container"
)

// changeOf returns what update reads from a command line.
func changeOf(t *testing.T, args ...string) (container.Change, error) {
	t.Helper()
	var change container.Change
	command := (&program{}).updateCommand()
	command.Action = func(c *cli.Context) (err error) {
		change, err = readChange(c)
		return err
	}
	app := &cli.App{Commands: []*cli.Command{command}, ExitErrHandler: func(*cli.Context, error) {}}
	err := app.Run(append([]string{"clove-oci", "update"}, args...))
	return change, err
}

func TestEveryFlagOfUpdateGoesSomewhere(t *testing.T) {
	for args, want := range map[string]string{
		"":                         `{"memory":{},"cpu":{},"pids":{},"blockIO":{}}`,
		"--memory 64m":             `{"memory":{"limit":67108864},"cpu":{},"pids":{},"blockIO":{}}`,
		"--memory -1":              `{"memory":{"limit":-1},"cpu":{},"pids":{},"blockIO":{}}`,
		"--memory-swap 5":          `{"memory":{"swap":5},"cpu":{},"pids":{},"blockIO":{}}`,
		"--memory-reservation 1k":  `{"memory":{"reservation":1024},"cpu":{},"pids":{},"blockIO":{}}`,
		"--kernel-memory 1k":       `{"memory":{},"cpu":{},"pids":{},"blockIO":{}}`,
		"--kernel-memory-tcp 1k":   `{"memory":{},"cpu":{},"pids":{},"blockIO":{}}`,
		"--pids-limit 0":           `{"memory":{},"cpu":{},"pids":{"limit":0},"blockIO":{}}`,
		"--pids-limit -1":          `{"memory":{},"cpu":{},"pids":{"limit":-1},"blockIO":{}}`,
		"--blkio-weight 20":        `{"memory":{},"cpu":{},"pids":{},"blockIO":{"weight":20}}`,
		"--cpuset-cpus 0-1":        `{"memory":{},"cpu":{"cpus":"0-1"},"pids":{},"blockIO":{}}`,
		"--cpuset-mems 0":          `{"memory":{},"cpu":{"mems":"0"},"pids":{},"blockIO":{}}`,
		"--cpu-quota -1":           `{"memory":{},"cpu":{"quota":-1},"pids":{},"blockIO":{}}`,
		"--cpu-period 7":           `{"memory":{},"cpu":{"period":7},"pids":{},"blockIO":{}}`,
		"--cpu-burst 7":            `{"memory":{},"cpu":{"burst":7},"pids":{},"blockIO":{}}`,
		"--cpu-share 7":            `{"memory":{},"cpu":{"shares":7},"pids":{},"blockIO":{}}`,
		"--cpu-rt-period 7":        `{"memory":{},"cpu":{"realtimePeriod":7},"pids":{},"blockIO":{}}`,
		"--cpu-rt-runtime 7":       `{"memory":{},"cpu":{"realtimeRuntime":7},"pids":{},"blockIO":{}}`,
		"--cpu-idle 1":             `{"memory":{},"cpu":{"idle":1},"pids":{},"blockIO":{}}`,
		"--l3-cache-schema L3:0=f": `{"memory":{},"cpu":{},"pids":{},"blockIO":{}}`,
	} {
		change, err := changeOf(t, strings.Fields(args)...)
		text, _ := json.Marshal(change.Resources)
		if err != nil || string(text) != want {
			t.Errorf("%s: %s, %v", args, text, err)
		}
	}
	change, err := changeOf(t, "--l3-cache-schema", "L3:0=f", "--mem-bw-schema", "MB:0=20")
	if err != nil || change.L3CacheSchema != "L3:0=f" || change.MemBwSchema != "MB:0=20" {
		t.Errorf("%+v, %v", change, err)
	}
	for _, args := range []string{"--memory x", "--memory -2", "--cpu-period -1", "--cpu-quota x", "--cpu-share 1.5", "--cpu-idle yes"} {
		flag, _, _ := strings.Cut(strings.TrimPrefix(args, "--"), " ")
		if _, err := changeOf(t, strings.Fields(args)...); err == nil || !strings.HasPrefix(err.Error(), "invalid value for "+flag+": ") {
			t.Errorf("%s: %v", args, err)
		}
	}
}

func TestAFileStandsForTheFlags(t *testing.T) {
	path := filepath.Join(t.TempDir(), "resources.json")
	if err := os.WriteFile(path, []byte(`{"pids":{"limit":9},"unified":{"memory.high":"5"}}`), 0o600); err != nil {
		t.Fatal(err)
	}
	change, err := changeOf(t, "--resources", path, "--memory", "64m")
	text, _ := json.Marshal(change.Resources)
	if want := `{"pids":{"limit":9},"unified":{"memory.high":"5"}}`; err != nil || string(text) != want {
		t.Errorf("%s, %v", text, err)
	}
}

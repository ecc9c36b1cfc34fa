package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/node"
)

// nodeBench is a machine with a configuration, clove-oci and a systemctl that
// notes how it was called, and fails when it is told to.
func nodeBench(t *testing.T) (b *bench, config string) {
	b = newBench(t)
	b.file("bin/clove-oci", "", 0o755)
	b.file("bin/systemctl", "#!/bin/sh\necho \"$*\" >>"+b.host.Dir+"/calls\n[ ! -e "+b.host.Dir+"/fail ] || { rm "+b.host.Dir+"/fail; echo no such unit >&2; exit 5; }\n", 0o755)
	t.Setenv("PATH", filepath.Join(b.host.Dir, "bin")+":"+os.Getenv("PATH"))
	return b, b.file("config.toml", "version = 3\n", 0o644)
}

func (b *bench) node(args ...string) (status int, stdout, stderr string) {
	b.t.Helper()
	return b.clove(append([]string{"node", "--containerd-config", filepath.Join(b.host.Dir, "config.toml")}, args...)...)
}

func TestNodeInstallAndUninstall(t *testing.T) {
	b, config := nodeBench(t)
	runtime := filepath.Join(b.host.Dir, "bin/clove-oci")
	for _, row := range []struct{ args, want, calls string }{
		{"install --runtime " + runtime, config + " changed; containerd reads it when it is restarted\n", ""},
		{"install --restart yes --runtime " + runtime, config + " is as it should be already\n", ""},
		{"install --restart yes --handler mine --service k3s.service --runtime " + runtime, config + " changed, and k3s.service was restarted\n", "restart k3s.service\n"},
		{"uninstall --restart yes", config + " changed, and containerd.service was restarted\n", "restart k3s.service\nrestart containerd.service\n"},
		{"uninstall", config + " is as it should be already\n", "restart k3s.service\nrestart containerd.service\n"},
	} {
		status, stdout, stderr := b.node(strings.Fields(row.args)...)
		calls, _ := os.ReadFile(filepath.Join(b.host.Dir, "calls")) // none before the first
		if status != 0 || stdout != row.want || string(calls) != row.calls {
			t.Errorf("%s: %d, %q, %s, calls %q", row.args, status, stdout, stderr, calls)
		}
		if named := strings.Contains(b.read(config), "runtimes.mine]"); named != strings.Contains(row.args, "mine") {
			t.Errorf("%s: the handler is called mine: %t", row.args, named)
		}
	}
	var result node.Result
	_, stdout, _ := b.node("install", "--json", "--runtime", runtime)
	if unmarshal(t, stdout, &result); result != (node.Result{Config: config, Changed: true}) {
		t.Errorf("%+v", result)
	}
	if b.paths != 0 {
		t.Error("the runtime was opened")
	}
}

func TestNodeTellsWhatSystemdSaid(t *testing.T) {
	b, config := nodeBench(t)
	b.file("fail", "", 0o644)
	status, _, stderr := b.node("install", "--restart", "yes", "--runtime", filepath.Join(b.host.Dir, "bin/clove-oci"))
	if status != exitFailed || !strings.Contains(stderr, "no such unit") || !strings.Contains(stderr, "hint: ") || b.read(config) != "version = 3\n" {
		t.Errorf("%d, %s\n%s", status, stderr, b.read(config))
	}
}

func TestNodeRefusesMistakes(t *testing.T) {
	for _, row := range []struct{ args, want string }{
		{"", "node takes one word"},
		{"reinstall", "node takes one word"},
		{"install uninstall", "node takes one word"},
		{"install --restart maybe", `"maybe" is neither`},
		{"install --runtime /nowhere/clove-oci", "there is no program /nowhere/clove-oci"},
		{"install", "there is no program"}, // beside a test's program there is none
		{"install --containerd-config=", "no file is named"},
		{"uninstall --handler clove", "it is install's"},
		{"uninstall --runtime /bin/sh", "it is install's"},
	} {
		b, config := nodeBench(t)
		status, stdout, stderr := b.node(strings.Fields(row.args)...)
		if status != exitFailed || stdout != "" || !strings.Contains(stderr, row.want) || !strings.Contains(stderr, "hint: ") || b.read(config) != "version = 3\n" {
			t.Errorf("%s: %d, %q, %s", row.args, status, stdout, stderr)
		}
	}
}

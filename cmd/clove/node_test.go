package main

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/deploy/node"
	"clove.run/clove/internal/rpc"
)

// nodeBench is a machine with a configuration, clove-oci, and a systemctl that records its
// calls and fails if the test wants that.
func nodeBench(t *testing.T) (b *bench, config string) {
	b = newBench(t)
	b.file("bin/clove-oci", "", 0o755)
	for _, name := range []string{"clove", "cloved", "clove-init", "clove-gate", "clove-loop", "clove-mcp", "clove-models", "clove-swap", "clove-tool", "clove-upstream"} {
		b.file("bin/"+name, "", 0o755)
	}
	b.file("booted", "", 0o644)
	b.file("bin/systemctl", "#!/bin/sh\n[ \"$1\" != show ] || exec cat "+b.host.Dir+"/$2\necho \"$*\" >>"+b.host.Dir+"/calls\n[ ! -e "+b.host.Dir+"/fail ] || { rm "+b.host.Dir+"/fail; echo no such unit >&2; exit 5; }\n", 0o755)
	b.file("--property=MainPID", "0\n", 0o644)
	b.file("--property=FragmentPath", "\n", 0o644)
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
		{"install --restart yes --runtime " + runtime, config + " is up to date\n", ""},
		{"install --restart yes --handler mine --service k3s.service --runtime " + runtime, config + " changed, and k3s.service was restarted\n", "restart k3s.service\n"},
		{"uninstall --restart yes", config + " changed, and containerd.service was restarted\n", "restart k3s.service\nrestart containerd.service\n"},
		{"uninstall", config + " is up to date\n", "restart k3s.service\nrestart containerd.service\n"},
	} {
		status, stdout, stderr := b.node(append(strings.Fields(row.args), "--cloved", "no")...)
		calls, _ := os.ReadFile(filepath.Join(b.host.Dir, "calls")) // none before the first
		if status != 0 || stdout != row.want || string(calls) != row.calls {
			t.Errorf("%s: %d, %q, %s, calls %q", row.args, status, stdout, stderr, calls)
		}
		if named := strings.Contains(b.read(config), "runtimes.mine]"); named != strings.Contains(row.args, "mine") {
			t.Errorf("%s: the handler is called mine: %t", row.args, named)
		}
	}
	var result node.Result
	_, stdout, _ := b.node("install", "--json", "--cloved", "no", "--runtime", runtime)
	if unmarshal(t, stdout, &result); result != (node.Result{Config: config, Changed: true}) {
		t.Errorf("%+v", result)
	}
	if b.paths != 0 {
		t.Error("the runtime was opened")
	}
}

// answering starts a cloved that answers the requests of node.
func (b *bench) answering() {
	b.daemon = b.cloved()
	b.daemon.answers[methods.Info.Name] = func(*rpc.Conn, json.RawMessage) (any, error) { return api.InfoResult{}, nil }
}

func (b *bench) calls() string {
	calls, _ := os.ReadFile(filepath.Join(b.host.Dir, "calls")) // none before the first
	return string(calls)
}

// TestNodeBringsCloved: by default, and as its flag says.
func TestNodeBringsCloved(t *testing.T) {
	b, config := nodeBench(t)
	b.answering()
	unit := b.file("units/clove.service", "# Written by clove node install; clove node uninstall takes it away.\n", 0o644)
	runtime := filepath.Join(b.host.Dir, "bin/clove-oci")
	status, stdout, stderr := b.node("install", "--runtime", runtime)
	if want := config + " changed; containerd reads it when it is restarted\n" + unit + " changed, and cloved serves\n"; status != 0 || stdout != want ||
		b.calls() != "daemon-reload\nenable --now clove.socket clove.service\n" || !strings.Contains(b.read(unit), "ExecStart="+b.host.Dir+"/bin/cloved\n") {
		t.Errorf("%d, %q, %s; calls %q, unit\n%s", status, stdout, stderr, b.calls(), b.read(unit))
	}
	self, err := os.Executable()
	if err := errors.Join(err, os.Remove(filepath.Join(b.host.Dir, "bin/cloved")), os.Symlink(self, filepath.Join(b.host.Dir, "bin/cloved"))); err != nil {
		t.Fatal(err)
	}
	b.file("--property=MainPID", strconv.Itoa(os.Getpid())+"\n", 0o644)
	if _, stdout, stderr := b.node("install", "--runtime", runtime); !strings.HasSuffix(stdout, unit+" is up to date, and cloved serves\n") {
		t.Errorf("the second time: %q, %s", stdout, stderr)
	}
	if _, stdout, _ := b.node("uninstall", "--cloved", "no"); strings.Contains(stdout, "cloved") || b.read(unit) == "" {
		t.Errorf("without cloved: %q", stdout)
	}
	var result node.Result
	status, stdout, stderr = b.node("uninstall", "--json")
	unmarshal(t, stdout, &result)
	if status != 0 || result.Changed || *result.Cloved != (node.ClovedResult{Unit: unit, Own: true, Changed: true}) {
		t.Errorf("%d, %+v, %s", status, result, stderr)
	}
	if left, err := os.ReadDir(filepath.Dir(unit)); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
	if _, stdout, stderr := b.node("uninstall"); !strings.HasSuffix(stdout, "clove node install has installed no cloved here\n") {
		t.Errorf("the second time: %q, %s", stdout, stderr)
	}
}

// TestTheUnitListensWhereItIsAsked: at the socket to which clove-oci and this command connect.
func TestTheUnitListensWhereItIsAsked(t *testing.T) {
	b, _ := nodeBench(t)
	if unit := b.read("../../deploy/node/units/clove.socket"); !strings.Contains(unit, "\nListenStream="+api.DefaultSocket+"\n") {
		t.Error(unit)
	}
}

func TestNodeUsesAnotherCloved(t *testing.T) {
	b, _ := nodeBench(t)
	b.answering()
	b.file("--property=FragmentPath", "/lib/systemd/system/clove.service\n", 0o644)
	_, stdout, stderr := b.node("install", "--runtime", filepath.Join(b.host.Dir, "bin/clove-oci"))
	if !strings.HasSuffix(stdout, "cloved (/lib/systemd/system/clove.service) was not installed by clove node install: it is used, and not changed\n") || b.calls() != "" {
		t.Errorf("%q, %s; calls %q", stdout, stderr, b.calls())
	}
}

// TestNodeWithoutAClovedThatServes: systemd reports that cloved started, and it does not
// answer.
func TestNodeWithoutAClovedThatServes(t *testing.T) {
	b, config := nodeBench(t)
	status, stdout, stderr := b.node("install", "--restart", "yes", "--runtime", filepath.Join(b.host.Dir, "bin/clove-oci"))
	left, err := os.ReadDir(filepath.Join(b.host.Dir, "units"))
	if status != exitFailed || stdout != "" || !strings.Contains(stderr, "journalctl -u clove.service") || err != nil || len(left) != 0 || b.read(config) != "version = 3\n" {
		t.Errorf("%d, %q, %s; left %v, %v\n%s", status, stdout, stderr, left, err, b.read(config))
	}
	if calls := b.calls(); !strings.Contains(calls, "disable --now clove.service clove.socket\n") || strings.Contains(calls, "containerd") {
		t.Errorf("calls %q", calls)
	}
	if err := os.Remove(filepath.Join(b.host.Dir, "booted")); err != nil {
		t.Fatal(err)
	}
	if _, _, stderr := b.node("install", "--runtime", filepath.Join(b.host.Dir, "bin/clove-oci")); !strings.Contains(stderr, "systemd does not run here") || !strings.Contains(stderr, "--cloved no") {
		t.Error(stderr)
	}
}

func TestNodeTellsWhatSystemdSaid(t *testing.T) {
	b, config := nodeBench(t)
	b.file("fail", "", 0o644)
	status, _, stderr := b.node("install", "--restart", "yes", "--cloved", "no", "--runtime", filepath.Join(b.host.Dir, "bin/clove-oci"))
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
		{"install --cloved maybe", `"maybe" is neither`},
		{"uninstall --cloved=", `its value is empty`},
		{"install --runtime /nowhere/clove-oci", "there is no program /nowhere/clove-oci"},
		{"install", "there is no program"}, // there is none beside the test binary
		{"install --containerd-config=", "its value is empty"},
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

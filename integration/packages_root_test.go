//go:build root

package integration

import (
	"archive/zip"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"clove.run/clove/agent"
)

func ownerOf(t *testing.T, path string) int {
	t.Helper()
	info, err := os.Stat(path)
	if err != nil {
		t.Fatal(err)
	}
	return int(info.Sys().(*syscall.Stat_t).Uid)
}

// TestAptInstallsALocalPackage: inside, as root of the sandbox, with a script of the package;
// the host does not change.
func TestAptInstallsALocalPackage(t *testing.T) {
	h := newHost(t)
	dir := t.TempDir()
	tree := filepath.Join(dir, "tree")
	for path, text := range map[string]string{
		"DEBIAN/control":        "Package: hello-clove\nVersion: 1.0\nArchitecture: all\nMaintainer: Nobody <nobody@example.org>\nDescription: a test\n",
		"DEBIAN/postinst":       "#!/bin/sh\nset -e\nuseradd --system hello-clove\necho configured > /etc/hello-clove.conf\n",
		"usr/share/hello-clove": "data\n",
	} {
		path = filepath.Join(tree, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	work := filepath.Join(dir, "work")
	if err := os.Mkdir(work, 0o755); err != nil {
		t.Fatal(err)
	}
	if out, err := exec.Command("dpkg-deb", "--build", "--root-owner-group", tree, filepath.Join(work, "hello.deb")).CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	r := h.agent([]string{"--user", "root", "--workspace", work}, "sh", "-ec",
		"apt-get install -y ./hello.deb >/tmp/log 2>&1 || cat /tmp/log; cat /etc/hello-clove.conf /usr/share/hello-clove; id -un hello-clove")
	r.want(t, agent.StatusExited, 0, "configured\ndata\nhello-clove\n")
	for _, path := range []string{"/etc/hello-clove.conf", "/usr/share/hello-clove", "/var/lib/dpkg/info/hello-clove.list"} {
		if _, err := os.Lstat(path); !os.IsNotExist(err) {
			t.Errorf("the host has %s: %v", path, err)
		}
	}
	// Control: without root inside the same command cannot install.
	if r := h.agent([]string{"--workspace", work}, "apt-get", "install", "-y", "./hello.deb"); r.code == 0 {
		t.Error("the agent installs a package without being root")
	}
}

// TestPipInstallsALocalWheel: inside, into the agent's own layer.
func TestPipInstallsALocalWheel(t *testing.T) {
	h := newHost(t)
	dir := t.TempDir()
	wheel := filepath.Join(dir, "hello_clove-1.0-py3-none-any.whl")
	writeWheel(t, wheel)
	if exec.Command("python3", "-m", "pip", "--version").Run() != nil {
		t.Log("this host's python3 has no pip: the wheel is imported from the file itself")
		r := h.agent([]string{"--workspace", dir}, "python3", "-c", "import sys; sys.path.insert(0, '/workspace/"+filepath.Base(wheel)+"'); import hello_clove")
		r.want(t, agent.StatusExited, 0, "from the wheel\n")
		return
	}
	const script = `python3 -m pip install --no-index --no-cache-dir --quiet --break-system-packages --root-user-action=ignore ./*.whl >&2 && python3 -c "import hello_clove"`
	for _, user := range []string{"root", "agent"} {
		r := h.agent([]string{"--user", user, "--workspace", dir}, "python3", "-c",
			"import subprocess, sys; sys.exit(subprocess.call(['sh', '-c', sys.argv[1]]))", script)
		r.want(t, agent.StatusExited, 0, "from the wheel\n")
	}
	if err := exec.Command("python3", "-c", "import hello_clove").Run(); err == nil {
		t.Error("the host's python3 has the package")
	}
}

// writeWheel makes a wheel of one module by hand (PEP 427).
func writeWheel(t *testing.T, path string) {
	t.Helper()
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	archive := zip.NewWriter(file)
	const info = "hello_clove-1.0.dist-info/"
	record := strings.Join([]string{"hello_clove.py,,", info + "METADATA,,", info + "WHEEL,,", info + "RECORD,,"}, "\n") + "\n"
	for _, entry := range [][2]string{
		{"hello_clove.py", "print('from the wheel')\n"},
		{info + "METADATA", "Metadata-Version: 2.1\nName: hello-clove\nVersion: 1.0\n"},
		{info + "WHEEL", "Wheel-Version: 1.0\nGenerator: hand\nRoot-Is-Purelib: true\nTag: py3-none-any\n"},
		{info + "RECORD", record},
	} {
		w, err := archive.Create(entry[0])
		if err == nil {
			_, err = w.Write([]byte(entry[1]))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
}

// TestInterpretersOutsideTheBase: a virtual environment, and a script of each kind that this
// host can run, by its #! line or by its file extension.
func TestInterpretersOutsideTheBase(t *testing.T) {
	h := newHost(t)
	dir := t.TempDir()
	environment := filepath.Join(dir, "venv")
	out, err := exec.Command("python3", "-m", "venv", "--without-pip", environment).CombinedOutput()
	if err != nil {
		t.Logf("this host's python3 makes no virtual environment, so none was run: %v\n%s", err, out)
	}
	script := scriptOf(t, "agent.py", "import sys; print(sys.prefix != sys.base_prefix, sys.argv[1:])\n")
	if r := h.clove("run", "--rm", script, "--", "a", "--b"); r.stdout != "False ['a', '--b']\n" {
		t.Errorf("plain: %q %s", r.stdout, r.stderr)
	}
	if err == nil {
		if r := h.clove("run", "--rm", "--python", environment, script); r.stdout != "True []\n" {
			t.Errorf("venv: %q %s", r.stdout, r.stderr)
		}
	}
	for name, text := range map[string]string{
		"a.sh": "echo ran", "b.pl": "print qq(ran\\n)", "c": "#!/bin/sh\necho ran\n", "d": "#!/usr/bin/env python3\nprint('ran')\n",
	} {
		if r := h.clove("run", "--rm", scriptOf(t, name, text)); r.stdout != "ran\n" {
			t.Errorf("%s: %q %s", name, r.stdout, r.stderr)
		}
	}
}

//go:build root

package kubernetes

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"clove.run/clove/internal/testhost"
)

// machine is a node and a pod's root on it, both made of this host's /usr, in
// directories that need no cluster.
type machine struct {
	t    *testing.T
	base string // on a tmpfs: an overlay takes no other overlay as its upper
}

// The node's systemctl tells how it was called; the pod's nsenter goes to the
// node, wherever it was told to go: the real one would reach this host.
var stubs = map[string]string{
	"node/stub/systemctl": "echo \"$*\" >>/restarts\n",
	"node/stub/sleep":     "exec /usr/bin/sleep 0.05\n",
	"pod/stub/sleep":      "exec /usr/bin/sleep 0.05\n",
	"pod/stub/nsenter":    "[ \"$1 $2 $3 $4\" = '--target 1 --mount --' ] || exit 9\nshift 4\nexec chroot /node \"$@\"\n",
}

const nodeConfig = "version = 2\n[plugins.\"io.containerd.grpc.v1.cri\".containerd.runtimes.runc]\nruntime_type = \"io.containerd.runc.v2\"\n"

func newMachine(t *testing.T) *machine {
	t.Helper()
	testhost.Root(t)
	base, err := os.MkdirTemp("/dev/shm", "clove")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(base) })
	m := &machine{t, base}
	for _, tree := range []string{"pod", "node"} {
		for _, dir := range []string{"usr", "proc", "dev", "upper/bin", "work", "stub"} {
			m.make(tree+"/"+dir, "")
		}
		for link, target := range map[string]string{"bin": "usr/bin", "sbin": "usr/sbin", "lib": "usr/lib", "lib64": "usr/lib64"} {
			if err := os.Symlink(target, filepath.Join(base, tree, link)); err != nil {
				t.Fatal(err)
			}
		}
	}
	m.make("pod/node", "")
	m.make("pod/host", "")
	m.make("node/opt/clove", "")
	m.make("node/etc/containerd/config.toml", nodeConfig)
	for path, text := range stubs {
		m.make(path, "#!/bin/sh\n"+text)
	}
	for _, program := range []string{"clove", "clove-oci"} {
		text, err := os.ReadFile(testhost.Binary(t, program))
		if err != nil {
			t.Fatal(err)
		}
		m.make("pod/upper/bin/"+program, string(text))
	}
	return m
}

// make makes an executable file, or, without a text, a directory.
func (m *machine) make(path, text string) {
	m.t.Helper()
	path = filepath.Join(m.base, path)
	err := os.MkdirAll(filepath.Dir(path), 0o755)
	if text == "" {
		err = errors.Join(err, os.MkdirAll(path, 0o755))
	} else {
		err = errors.Join(err, os.WriteFile(path, []byte(text), 0o755))
	}
	if err != nil {
		m.t.Fatal(err)
	}
}

// read returns a file of the node, or nothing where there is none.
func (m *machine) read(path string) string {
	text, _ := os.ReadFile(filepath.Join(m.base, "node", path)) // none is an answer
	return string(text)
}

// mounts happen in a namespace that ends with the command.
const mounts = `
mount --make-rprivate /
for tree in pod node; do
	mount -t overlay overlay -o "lowerdir=/usr,upperdir=$BASE/$tree/upper,workdir=$BASE/$tree/work" "$BASE/$tree/usr"
	mount --rbind /proc "$BASE/$tree/proc"
	mount --rbind /dev "$BASE/$tree/dev"
done
mount --rbind "$BASE/node" "$BASE/pod/node"
mount --bind "$BASE/node/opt/clove" "$BASE/pod/host"
exec chroot "$BASE/pod" "$@"
`

// initContainer is the command of a manifest's container that does the work.
func (m *machine) initContainer(file string) *exec.Cmd {
	m.t.Helper()
	command := only[*appsv1.DaemonSet](m.t, manifests(m.t)[file]).Spec.Template.Spec.InitContainers[0].Command
	cmd := exec.CommandContext(m.t.Context(), "unshare", append([]string{"--mount", "sh", "-ec", mounts, "sh"}, command...)...)
	cmd.Env = []string{"BASE=" + m.base, "PATH=/stub:/usr/sbin:/usr/bin:/sbin:/bin"}
	cmd.Stderr = os.Stderr
	return cmd
}

func (m *machine) run(file string) {
	m.t.Helper()
	if err := m.initContainer(file).Run(); err != nil {
		m.t.Fatalf("%s: %v", file, err)
	}
}

// TestTheDaemonSetsWorkOnANode runs what the manifests' containers run, twice each.
func TestTheDaemonSetsWorkOnANode(t *testing.T) {
	m := newMachine(t)
	m.run("install.yaml")
	once := m.read("etc/containerd/config.toml")
	if !strings.HasPrefix(once, nodeConfig) || !strings.Contains(once, "BinaryName = '/opt/clove/bin/clove-oci'") {
		t.Errorf("the configuration is\n%s", once)
	}
	m.run("install.yaml")
	if again := m.read("etc/containerd/config.toml"); again != once || m.read("restarts") != "restart containerd.service\n" {
		t.Errorf("the second time: restarts %q, configuration\n%s", m.read("restarts"), again)
	}
	if len(m.read("opt/clove/bin/clove-oci")) == 0 {
		t.Error("clove-oci is not there")
	}
	m.uninstallUnderALivingContainer()
	m.run("uninstall.yaml")
	left, err := os.ReadDir(filepath.Join(m.base, "node/opt/clove"))
	if err != nil || len(left) != 0 || m.read("restarts") != strings.Repeat("restart containerd.service\n", 2) {
		t.Errorf("left: %v, %v; restarts %q", left, err, m.read("restarts"))
	}
	if beside, err := os.ReadDir(filepath.Join(m.base, "node/etc/containerd")); err != nil || len(beside) != 1 {
		t.Errorf("beside the configuration: %v, %v", beside, err)
	}
}

// uninstallUnderALivingContainer: the handler goes at once, the programs when
// the container is gone.
func (m *machine) uninstallUnderALivingContainer() {
	m.t.Helper()
	const options = "node/run/containerd/io.containerd.runtime.v2.task/k8s.io/one/options.json"
	m.make(options, `{"binary_name":"/opt/clove/bin/clove-oci"}`)
	uninstall := m.initContainer("uninstall.yaml")
	stdout, err := uninstall.StdoutPipe()
	if err != nil {
		m.t.Fatal(err)
	}
	if err := uninstall.Start(); err != nil {
		m.t.Fatal(err)
	}
	lines := bufio.NewScanner(stdout)
	for lines.Scan() && !strings.HasPrefix(lines.Text(), "waiting") {
	}
	if m.read("etc/containerd/config.toml") != nodeConfig || len(m.read("opt/clove/bin/clove-oci")) == 0 {
		m.t.Errorf("while a container lives, clove-oci is gone, or the configuration is\n%s", m.read("etc/containerd/config.toml"))
	}
	if err := os.Remove(filepath.Join(m.base, options)); err != nil {
		m.t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := uninstall.Wait(); err != nil {
		m.t.Fatal(err)
	}
}

//go:build root

package kubernetes

import (
	"bufio"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"

	"clove.run/clove/internal/testhost"
)

// machine is a node and a pod's root on it, both made of this host's /usr, in directories. No
// cluster is needed.
type machine struct {
	t    *testing.T
	base string // on a tmpfs: an overlay cannot be the upper layer of another one
}

// systemctl records its calls, and treats cloved's units as their text says: it runs the
// program, and waits until that serves or ends.
const systemctl = `
program=$(sed -n 's/^ExecStart=//p' /etc/systemd/system/clove.service 2>/dev/null)
start() {
	: >/log # by itself: the earlier process was ready, too
	setsid "$program" >/log 2>&1 </dev/null &
	echo $! >/pid
	until grep -q 'msg=ready' /log; do
		kill -0 "$!" 2>/dev/null || { rm /pid; exit 1; }
		sleep 1
	done
}
stop() {
	[ -e /pid ] || return 0
	kill "$(cat /pid)" 2>/dev/null
	while [ -e "/proc/$(cat /pid)/exe" ]; do sleep 1; done
	rm /pid
}
case "$*" in
"show --property=MainPID"*) if [ -e /pid ]; then cat /pid; else echo 0; fi; exit ;;
show*) exit ;;
"enable --now"*) [ -n "$program" ] || exit 1; [ -e /pid ] || start ;;
"restart clove.service") stop; start ;;
"disable --now"*) stop ;;
esac
echo "$*" >>/orders
`

// The pod's nsenter enters the node, whatever its arguments are: the real one would reach this
// host.
var stubs = map[string]string{
	"node/stub/systemctl": systemctl,
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
	t.Cleanup(m.endCloved)
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
	m.make("node/run/systemd/system", "")
	m.make("node/etc/systemd/system", "")
	m.make("node/etc/containerd/config.toml", nodeConfig)
	for path, text := range stubs {
		m.make(path, "#!/bin/sh\n"+text)
	}
	for _, program := range []string{"clove", "cloved", "clove-gate", "clove-init", "clove-loop", "clove-mcp", "clove-models", "clove-oci", "clove-swap", "clove-tool", "clove-upstream"} {
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
	text, _ := os.ReadFile(filepath.Join(m.base, "node", path)) // an absent file reads as empty
	return string(text)
}

// mounts are made in a namespace that ends with the command.
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

// initContainer returns the command of the manifest's container that does the work.
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
		m.t.Fatalf("%s: %v; cloved says %s", file, err, m.read("log"))
	}
}

// cloved returns the pid of the node's cloved, as its systemctl knows it; 0: none.
func (m *machine) cloved() int {
	pid, _ := strconv.Atoi(strings.TrimSpace(m.read("pid"))) // an empty text means 0
	return pid
}

// program returns the path of the program that a process of the node executes.
func program(pid int) string {
	path, _ := os.Readlink(filepath.Join("/proc", strconv.Itoa(pid), "exe")) // empty after its end
	return path
}

// endCloved is for a test that failed before it uninstalled.
func (m *machine) endCloved() {
	if pid := m.cloved(); pid != 0 && strings.Contains(program(pid), "/opt/clove/bin/cloved") {
		if process, err := os.FindProcess(pid); err == nil {
			_ = process.Kill() // it may have ended meanwhile
		}
	}
}

// orders returns the commands that the node's systemctl got since the last call, and carried
// out.
func (m *machine) orders() string {
	m.t.Helper()
	orders := m.read("orders")
	if err := os.RemoveAll(filepath.Join(m.base, "node/orders")); err != nil {
		m.t.Fatal(err)
	}
	return orders
}

const (
	cameUp    = "daemon-reload\nenable --now clove.socket clove.service\n"
	renewed   = "restart clove.service\n"
	wentAway  = "disable --now clove.service clove.socket\nstop clove-agents.service clove.slice\nreset-failed clove.service clove.socket clove-agents.service\ndaemon-reload\n"
	restarted = "restart containerd.service\n"
)

// TestTheDaemonSetsWorkOnANode runs what the manifests' containers run, twice
// each, with the real cloved.
func TestTheDaemonSetsWorkOnANode(t *testing.T) {
	m := newMachine(t)
	m.run("install.yaml")
	once, cloved := m.read("etc/containerd/config.toml"), m.cloved()
	if !strings.HasPrefix(once, nodeConfig) || !strings.Contains(once, "BinaryName = '/opt/clove/bin/clove-oci'") {
		t.Errorf("the configuration is\n%s", once)
	}
	if orders := m.orders(); orders != cameUp+restarted || !strings.HasSuffix(program(cloved), "/opt/clove/bin/cloved") {
		t.Errorf("orders %q; process %d executes %q", orders, cloved, program(cloved))
	}
	m.run("install.yaml")
	if again, orders := m.read("etc/containerd/config.toml"), m.orders(); again != once || orders != "" || m.cloved() != cloved {
		t.Errorf("the second time: orders %q, configuration\n%s", orders, again)
	}
	m.renew(cloved)
	m.uninstallUnderALivingContainer()
	m.run("uninstall.yaml")
	for dir, want := range map[string]int{"opt/clove": 0, "etc/systemd/system": 0, "etc/containerd": 1} {
		left, err := os.ReadDir(filepath.Join(m.base, "node", dir))
		if err != nil || len(left) != want {
			t.Errorf("in %s: %v, %v", dir, left, err)
		}
	}
	if orders := m.orders(); orders != "" || m.read("etc/containerd/config.toml") != nodeConfig {
		t.Errorf("the second time: orders %q, configuration\n%s", orders, m.read("etc/containerd/config.toml"))
	}
}

// renew installs a newer cloved in place of the old one.
func (m *machine) renew(cloved int) {
	m.t.Helper()
	newer, err := os.OpenFile(filepath.Join(m.base, "pod/upper/bin/cloved"), os.O_WRONLY|os.O_APPEND, 0)
	if err != nil {
		m.t.Fatal(err)
	}
	_, err = newer.WriteString("newer")
	if err := errors.Join(err, newer.Close()); err != nil {
		m.t.Fatal(err)
	}
	m.run("install.yaml")
	if orders := m.orders(); orders != cameUp+renewed || m.cloved() == cloved || program(cloved) != "" || strings.HasSuffix(program(m.cloved()), "(deleted)") {
		m.t.Errorf("a newer cloved: orders %q; process %d executes %q", orders, m.cloved(), program(m.cloved()))
	}
}

// TestAClovedThatDoesNotComeUp: the pod fails, and the node is unchanged except for the
// programs.
func TestAClovedThatDoesNotComeUp(t *testing.T) {
	m := newMachine(t)
	m.make("pod/upper/bin/cloved", "#!/bin/sh\necho it is broken >&2\nexit 1\n")
	cmd := m.initContainer("install.yaml")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Run(); err == nil || !strings.Contains(said.String(), "journalctl -u clove.service") {
		t.Errorf("%v, %s", err, said.String())
	}
	units, err := os.ReadDir(filepath.Join(m.base, "node/etc/systemd/system"))
	if orders := m.orders(); err != nil || len(units) != 0 || m.read("etc/containerd/config.toml") != nodeConfig || orders != "daemon-reload\n"+wentAway {
		t.Errorf("orders %q, units %v, %v, configuration\n%s", orders, units, err, m.read("etc/containerd/config.toml"))
	}
}

// uninstallUnderALivingContainer: the handler is removed at once; cloved and the programs
// after the container's end.
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
	cloved := m.cloved()
	if m.read("etc/containerd/config.toml") != nodeConfig || len(m.read("opt/clove/bin/clove-oci")) == 0 || program(cloved) == "" {
		m.t.Errorf("while a container lives, clove-oci or cloved is gone, or the configuration is\n%s", m.read("etc/containerd/config.toml"))
	}
	if orders := m.orders(); orders != restarted {
		m.t.Errorf("while a container lives: orders %q", orders)
	}
	if err := os.Remove(filepath.Join(m.base, options)); err != nil {
		m.t.Fatal(err)
	}
	for lines.Scan() {
	}
	if err := uninstall.Wait(); err != nil {
		m.t.Fatal(err)
	}
	if orders := m.orders(); orders != wentAway || program(cloved) != "" {
		m.t.Errorf("orders %q; cloved executes %q", orders, program(cloved))
	}
}

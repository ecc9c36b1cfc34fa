//go:build root

package engines

import (
	"os"
	"strings"
	"testing"
)

// containerdConfig is a configuration of version 2, as containerd 1.x reads it. The two
// runtimes differ only in the program.
const containerdConfig = `
version = 2
root = "/run/containerd/root"
state = "/run/containerd/state"
[grpc]
  address = "/run/containerd/sock"
# Its own seconds are too few for a shim in an interpreted machine beside other load.
[timeouts]
  "io.containerd.timeout.shim.cleanup" = "5m"
  "io.containerd.timeout.shim.load" = "5m"
  "io.containerd.timeout.shim.shutdown" = "5m"
  "io.containerd.timeout.task.state" = "5m"
[plugins."io.containerd.internal.v1.opt"]
  path = "/run/containerd/opt"
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "` + pauseImage + `"
  stream_server_address = "127.0.0.1"
  # A root without CAP_SYS_RESOURCE cannot go below its own value.
  restrict_oom_score_adj = true
  [plugins."io.containerd.grpc.v1.cri".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "/run/containerd/cni"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    pod_annotations = ["run.clove.*"]
    container_annotations = ["run.clove.*"]
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
      BinaryName = "runc"
      MORE
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.clove]
    runtime_type = "io.containerd.runc.v2"
    pod_annotations = ["run.clove.*"]
    container_annotations = ["run.clove.*"]
    [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.clove.options]
      BinaryName = "clove-oci"
      MORE
`

// podNetwork is a bridge inside the world, as a cluster's CNI plugin makes one.
const podNetwork = `{"cniVersion": "0.4.0", "name": "pods", "plugins": [
	{"type": "bridge", "bridge": "pods0", "isGateway": true, "ipam": {"type": "host-local", "ranges": [[{"subnet": "198.18.0.0/24"}]]}},
	{"type": "loopback"}]}`

// startContainerd starts containerd with both images in one of its namespaces, and with more
// options for both runtimes.
func startContainerd(t *testing.T, namespace, options string) {
	t.Helper()
	if err := os.MkdirAll("/run/containerd/cni", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile("/run/containerd/cni/10-pods.conflist", []byte(podNetwork), 0o644); err != nil {
		t.Fatal(err)
	}
	startDaemon(t, "containerd", "-c", write(t, "config.toml", strings.ReplaceAll(containerdConfig, "MORE", options)))
	for _, image := range []string{agentImage, pauseImage} {
		file := t.TempDir() + "/image.tar"
		archive(t, file, image)
		want(t, "", "ctr -a /run/containerd/sock -n "+namespace+" images import "+file+" >/dev/null || echo failed")
	}
}

// ctrPrelude: run runs a container in the foreground, up in the background.
const ctrPrelude = `
export CONTAINERD_ADDRESS=/run/containerd/sock CONTAINERD_NAMESPACE=engines I=clove.test/agent:1
if [ $R = clove ]; then program=/opt/clove/clove-oci; else program=runc; fi
trap '{ ctr t rm -f $N; ctr c rm $N; } 2>/dev/null' EXIT
run() { ctr run --rm --runc-binary $program "$@"; }
up() { ctr run -d --runc-binary $program --log-uri "file:///run/$N.log" "$@"; }
status() { ctr t ls | sed -n "s/^$N  *[0-9]*  *//p" | tr -d ' '; }
gone() { ctr t delete -f $N >/dev/null 2>&1; }
`

func TestContainerd(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		startContainerd(t, "engines", "")
		try(t, ctrPrelude, ctrRows)
	})
}

var ctrRows = []row{
	{name: "streams", script: `run $I $N sh -c 'echo out; echo err >&2' 2>/tmp/$N; grep -v level=warning /tmp/$N`, want: `out\nerr`},
	{name: "exit statuses", script: `run $I $N true; echo -n "$? "; run $I $N sh -c 'exit 7'; echo -n "$? "`, want: `0 7`},
	{name: "words of a failed start", script: `for c in absent /etc/plain; do run $I $N $c 2>&1 | grep -oE 'exec: .*(denied|PATH)'; ctr c rm $N; done`,
		want: `exec: "absent": executable file not found in \$PATH\nexec: "/etc/plain": permission denied`},
	{name: "a task runs", script: `up $I $N obey; status; ctr t ps $N | sed 1d | wc -l; ctr t kill -s TERM $N; gone`, want: `RUNNING\n[12]`},
	{name: "exec", cgroup: true, script: `up $I $N obey; ctr t exec --exec-id x $N sh -c 'echo in; exit 5'; echo $?; ctr t exec --exec-id y --cwd /srv --user mallory $N sh -c 'echo $PWD $(id -u)'; ctr t exec --exec-id z $N absent 2>&1 | grep -o 'executable file not found in .PATH'; gone`,
		want: `in\n5\n/srv 1000\nexecutable file not found in \$PATH`},
	{name: "kill", want: `got USR1\n3`, script: `
		mkfifo /run/$N; run $I $N obey >/run/$N & exec 3</run/$N; read -u 3 line
		ctr t kill -s USR1 $N; read -u 3 line; echo $line; ctr t kill -s TERM $N; wait $!; echo $?`},
	{name: "pause", cgroup: true, script: `up $I $N obey; ctr t pause $N; status; ctr t resume $N; status; ctr t exec --exec-id x $N echo still; gone`, want: `PAUSED\nRUNNING\nstill`},
	{name: "metrics", cgroup: true, script: `up --memory-limit 67108864 $I $N obey; ctr t metrics $N | sed -nE 's/^(memory.limit_in_bytes|memory.usage_limit) +//p'; gone`, want: `67108864`},
	{name: "memory", cgroup: true, script: `run --memory-limit 33554432 $I $N eat; echo -n "$? "; run $I $N eat; echo $?`, want: `137 0`},
	{name: "the agent's own limit", cgroup: true, script: `run --annotation run.clove.limits.memory=32M $I $N eat; echo -n "$? "; run $I $N eat; echo $?`, want: `0 0`, clove: `137 0`},
	{name: "an annotation that cannot be understood", script: `run --annotation run.clove.limits.memory=much $I $N true 2>&1 | grep -o 'run.clove.limits.memory'; ctr t ls -q | grep $N; ctr c rm $N`, want: ``, clove: `run.clove.limits.memory`},
	{name: "no checkpoint", script: `up $I $N obey; ctr t checkpoint $N 2>&1 | grep -oE 'CRIU version check failed|does not checkpoint'; status; gone`,
		want: `CRIU version check failed\nRUNNING`, clove: `does not checkpoint\nRUNNING`},
}

//go:build root

package engines

import "testing"

// podmanConfig is what a user writes into containers.conf, and what else is needed without
// systemd.
const podmanConfig = `
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
runtime_supports_json = ["clove", "clove-oci", "crun", "runc"]
[engine.runtimes]
clove = ["/opt/clove/clove-oci"]
`

const podmanStorage = `
[storage]
driver = "overlay"
graphroot = "/run/podman/storage"
runroot = "/run/podman/run"
`

const podmanPrelude = `
export I=clove.test/agent:1
podman() { command podman --runtime "$R" "$@"; }
trap 'podman rm -f -t 0 -v "$N" "$N-2" >/dev/null 2>&1' EXIT
engine() { podman "$@"; }
run() { podman run --rm --network none "$@"; }
said() { local text; text=$(podman "$@" 2>&1); echo $? $(grep -om1 'need cloved\|in no pod' <<<"$text"); }
up() { podman run -d --network none --name "$N" "$@" >/dev/null && grep -qm1 up < <(podman logs -f "$N"); }
`

// startPodman prepares the world for Podman, with both images: it has no daemon.
func startPodman(t *testing.T) {
	t.Helper()
	t.Setenv("CONTAINERS_CONF", write(t, "containers.conf", podmanConfig))
	t.Setenv("CONTAINERS_STORAGE_CONF", write(t, "storage.conf", podmanStorage))
	for _, image := range []string{agentImage, pauseImage} {
		file := t.TempDir() + "/image.tar"
		archive(t, file, image)
		want(t, "", "podman load -q -i "+file+" >/dev/null || echo failed")
	}
}

func TestPodman(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		startPodman(t)
		for _, rows := range [][]row{sharedRuns, sharedLives, sharedLimits, podmanOnly} {
			try(t, podmanPrelude, rows)
		}
	})
}

var podmanOnly = []row{
	{name: "info", script: `podman info --format '{{.Host.OCIRuntime.Name}}'; podman create --name $N $I true >/dev/null; podman inspect -f '{{.OCIRuntime}}' $N`, want: `runc\nrunc`, clove: `clove\nclove`},
	// If Podman expects no JSON log from a runtime, its error shows a line of the log: time="…"
	// level=error msg="…".
	{name: "an error", script: `run $I nosuch 2>&1`, want: `Error: runc: runc create failed: [^"]*exec: "nosuch": executable file not found in \$PATH: OCI runtime.*`,
		clove: `Error: clove: clove-oci create failed: [^"]*exec: "nosuch": executable file not found in \$PATH: OCI runtime.*`},
	{name: "init", script: `run --init --init-path /usr/bin/tini-static $I cat /proc/1/comm; run $I cat /proc/1/comm`, want: `podman-init\ncat`},
	{name: "bridge", want: `served`, script: `
		podman run -d --name $N $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; echo up; exec obey' >/dev/null; grep -qm1 up < <(podman logs -f $N)
		podman run --rm $I wget -qO- http://$(podman inspect -f '{{.NetworkSettings.IPAddress}}' $N)/page`},
	{name: "a pod", cgroup: true, want: `served\nExited`, script: `
		podman pod create --name $N-pod --infra-image clove.test/pause:1 --network none >/dev/null
		podman run -d --pod $N-pod --name $N $I sh -c 'echo served >/srv/page; httpd -h /srv -p 127.0.0.1:80; echo up; exec obey' >/dev/null
		grep -qm1 up < <(podman logs -f $N)
		podman run --rm --pod $N-pod $I wget -qO- http://127.0.0.1/page
		podman pod stop -t 1 $N-pod >/dev/null 2>&1; podman pod inspect -f '{{.State}}' $N-pod; podman pod rm -f -t 0 $N-pod >/dev/null`},
	// Before its command executes, the process is called obey, too.
	{name: "top", script: `up $I obey; until podman top $N args >/tmp/$N && grep -q 'sleep 600' /tmp/$N; do :; done; grep -c obey /tmp/$N`, want: `1`},
	{name: "stats", cgroup: true, script: `up -m 64m $I obey; podman stats --no-stream --format '{{.PIDS}} {{.MemLimit}}' $N`, want: `[12] (67108864|67.11MB)`},
	{name: "health", want: `1\n0`, script: `
		up --health-cmd 'cat /srv/well' --health-interval disable $I obey; podman healthcheck run $N >/dev/null; echo $?
		podman exec $N touch /srv/well; podman healthcheck run $N; echo $?`},
	{name: "restart policy", want: `2 exited 1`, script: `
		podman run -d --network none --restart on-failure:2 --name $N $I sh -c 'exit 1' >/dev/null
		head -n 3 < <(podman events --since 1h --filter container=$N --filter event=died --format died) >/dev/null
		podman wait $N >/dev/null; podman inspect -f '{{.RestartCount}} {{.State.Status}} {{.State.ExitCode}}' $N`},
	// Podman passes annotations to the runtime, so the agent's own rules arrive.
	{name: "the agent's own limit", cgroup: true, script: `run --annotation run.clove.limits.memory=32M $I eat; echo -n "$? "; run $I eat; echo $?`, want: `0 0`, clove: `137 0`},
	// Containers in its pods have CRI-O's annotations, and no engine gives the pod's sandbox
	// rules. The control is a container outside of a pod, which needs cloved.
	{name: "rules in a pod", want: `no pod 0\npod 0\nlimit 0`, clove: `no pod 126 need cloved\npod 126 in no pod\nlimit 137`, script: `
		podman pod create --name $N-pod --infra-image clove.test/pause:1 --network none >/dev/null
		echo "no pod $(said run --rm --network none --annotation run.clove.network.mode=none $I true)"
		echo "pod $(said run --rm --pod $N-pod --annotation run.clove.network.mode=none $I true)"
		echo "limit $(said run --rm --pod $N-pod --annotation run.clove.limits.memory=32M $I eat)"
		podman pod rm -f -t 0 $N-pod >/dev/null`},
	{name: "a role by hand", script: `
		for role in io.kubernetes.cri.container-type io.kubernetes.cri-o.ContainerType; do
			run --annotation $role=sandbox --annotation run.clove.limits.memory=32M $I eat; echo -n "$? "; done`, want: `0 0`, clove: `137 137`},
	{name: "a limit that is wider", script: `run -m 32m --annotation run.clove.limits.memory=64M $I true 2>&1 | grep -c 'run.clove.limits.memory'`, want: `0`, clove: `1`},
}

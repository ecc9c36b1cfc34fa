//go:build root

package engines

import "testing"

// podmanConfig is what a user writes into containers.conf, and what a world without
// systemd needs besides.
const podmanConfig = `
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
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
run() { podman run --rm --network none "$@"; }
up() { podman run -d --network none --name "$N" "$@" >/dev/null && grep -qm1 up < <(podman logs -f "$N"); }
`

func TestPodman(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		t.Setenv("CONTAINERS_CONF", write(t, "containers.conf", podmanConfig))
		t.Setenv("CONTAINERS_STORAGE_CONF", write(t, "storage.conf", podmanStorage))
		for _, image := range []string{agentImage, pauseImage} {
			file := t.TempDir() + "/image.tar"
			archive(t, file, image)
			if _, stderr := shell(t, "podman load -q -i "+file+" 2>&1 >/dev/null | grep Error >&2"); stderr != "" {
				t.Fatal(stderr)
			}
		}
		for _, rows := range [][]row{podmanRuns, podmanLives, podmanLimits} {
			try(t, podmanPrelude, rows)
		}
	})
}

var podmanRuns = []row{
	{name: "info", script: `podman info --format '{{.Host.OCIRuntime.Name}}'; podman create --name $N $I true >/dev/null; podman inspect -f '{{.OCIRuntime}}' $N`, want: `runc\nrunc`, clove: `clove\nclove`},
	{name: "streams", script: `echo in | run -i $I sh -c 'cat; echo err >&2' 2>/tmp/$N; cat /tmp/$N`, want: `in\nerr`},
	{name: "exit statuses", want: `0 7 137 143 126 127`, script: `
		for c in 'true' 'exit 7' 'kill -9 $$' 'exec sh -c "trap \"exit 143\" TERM; kill $$"'; do run $I sh -c "$c"; echo -n "$? "; done
		run $I /etc/plain 2>/dev/null; echo -n "$? "; run $I absent 2>/dev/null; echo $?`},
	{name: "a terminal", script: `run -t $I sh -c 'tty; test -t 0 && test -t 1 && echo both' | tr -d '\r'`, want: `/dev/console|/dev/pts/0\nboth`},
	{name: "logs", script: `podman run --network none --name $N $I sh -c 'echo out; echo err >&2' >/dev/null 2>&1; podman logs $N 2>/dev/null; podman logs $N 2>&1 >/dev/null`, want: `out\nerr`},
	{name: "init", script: `run --init --init-path /usr/bin/tini-static $I sh -c 'cat /proc/1/comm'; run $I cat /proc/1/comm`, want: `podman-init\ncat|tini-static\ncat`},
	{name: "bridge", want: `served`, script: `
		podman run -d --name $N $I sh -c 'echo served >/srv/page; httpd -h /srv -p 80; echo up; exec obey' >/dev/null; grep -qm1 up < <(podman logs -f $N)
		podman run --rm $I wget -qO- http://$(podman inspect -f '{{.NetworkSettings.IPAddress}}' $N)/page`},
	{name: "volumes", want: `kept\n1`, script: `
		podman volume create $N-v >/dev/null; run -v $N-v:/v $I sh -c 'echo kept >/v/f'; run -v $N-v:/v:ro $I cat /v/f
		run -v $N-v:/v:ro $I touch /v/g 2>/dev/null; echo $?; podman volume rm $N-v >/dev/null`},
	{name: "a pod", want: `served\nExited`, script: `
		podman pod create --name $N-pod --infra-image clove.test/pause:1 --network none >/dev/null
		podman run -d --pod $N-pod --name $N $I sh -c 'echo served >/srv/page; httpd -h /srv -p 127.0.0.1:80; echo up; exec obey' >/dev/null
		grep -qm1 up < <(podman logs -f $N)
		podman run --rm --pod $N-pod $I sh -c 'ip link set lo up; wget -qO- http://127.0.0.1/page'
		podman pod stop -t 1 $N-pod >/dev/null; podman pod inspect -f '{{.State}}' $N-pod; podman pod rm -f -t 0 $N-pod >/dev/null`},
}

var podmanLives = []row{
	{name: "exec", want: `in 5 1000 /srv b\n126 127\ndetached`, script: `
		up $I obey
		podman exec $N sh -c 'echo -n "in "; exit 5'; echo -n "$? "
		podman exec -u mallory -w /srv -e A=b $N sh -c 'echo $(id -u) $PWD $A'
		podman exec $N /etc/plain >/dev/null 2>&1; echo -n "$? "; podman exec $N absent >/dev/null 2>&1; echo $?
		podman exec -d $N sh -c 'echo detached >/proc/1/fd/1' >/dev/null; grep -om1 detached < <(podman logs -f $N)`},
	{name: "exec with a terminal", script: `up $I obey; podman exec -t $N sh -c 'tty; exit 4' | tr -d '\r'; echo ${PIPESTATUS[0]}`, want: `/dev/pts/[01]\n4`},
	{name: "stop", script: `up $I obey; podman stop $N >/dev/null; podman logs $N; podman wait $N`, want: `up\ngot TERM\n3`},
	{name: "stop of one that does not listen", script: `up $I stubborn; podman stop -t 1 $N >/dev/null 2>&1; podman wait $N`, want: `137`},
	{name: "kill", script: `up $I obey; podman kill -s USR1 $N >/dev/null; grep -om1 'got USR1' < <(podman logs -f $N); podman kill $N >/dev/null; podman wait $N`, want: `got USR1\n137`},
	{name: "pause", want: `paused\nrunning\nstill`, script: `
		up $I obey; podman pause $N >/dev/null; podman inspect -f '{{.State.Status}}' $N
		podman unpause $N >/dev/null; podman inspect -f '{{.State.Status}}' $N; podman exec $N echo still`},
	{name: "top", script: `up $I obey; podman top $N args | grep -c obey`, want: `1`},
	{name: "stats", script: `up -m 64m $I obey; podman stats --no-stream --format '{{.PIDS}} {{.MemLimit}}' $N`, want: `[12] 67108864|[12] 67.11MB`},
	{name: "health", script: `up --health-cmd 'cat /srv/well' --health-interval disable $I obey; podman healthcheck run $N >/dev/null; echo $?; podman exec $N touch /srv/well; podman healthcheck run $N; echo $?`, want: `1\n0`},
	{name: "restart policy", want: `2 exited 1`, script: `
		podman run -d --network none --restart on-failure:2 --name $N $I sh -c 'exit 1' >/dev/null
		head -n 3 < <(podman events --since 1h --filter container=$N --filter event=died --format died) >/dev/null
		podman wait $N >/dev/null; podman inspect -f '{{.RestartCount}} {{.State.Status}} {{.State.ExitCode}}' $N`},
	{name: "remove by force", script: `up $I stubborn; podman rm -f -t 0 $N >/dev/null; podman ps -aq --filter name=$N | wc -l`, want: `0`},
}

var podmanLimits = []row{
	{name: "memory", script: `run -m 32m --memory-swap 32m $I eat; echo -n "$? "; run -m 256m $I eat; echo -n "$? "; run $I eat; echo $?`, want: `137 0 0`},
	{name: "an OOM kill is told", script: `podman run --network none -m 32m --memory-swap 32m --name $N $I eat; podman inspect -f '{{.State.OOMKilled}}' $N`, want: `true`},
	{name: "pids", script: `run --pids-limit 8 $I forks; echo -n "$? "; run $I forks`, want: `2 forked all`},
	{name: "update", want: `268435456\n33554432`, script: `
		up -m 256m --memory-swap 256m $I obey; podman exec $N limit memory/memory.limit_in_bytes memory.max
		podman update -m 32m --memory-swap 32m $N >/dev/null; podman exec $N limit memory/memory.limit_in_bytes memory.max`},
	// Podman hands annotations on to the runtime, so the agent's own rules arrive.
	{name: "the agent's own limit", script: `run --annotation run.clove.limits.memory=32M $I eat; echo -n "$? "; run $I eat; echo $?`, want: `0 0`, clove: `137 0`},
	{name: "a limit that is wider", script: `run -m 32m --annotation run.clove.limits.memory=64M $I true 2>&1 | grep -c 'run.clove.limits.memory'`, want: `0`, clove: `1`},
}

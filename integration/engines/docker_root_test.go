//go:build root

package engines

import "testing"

// dockerPrelude: run starts a container in the foreground, up one in the
// background that has said "up", event waits for the Nth of a kind.
const dockerPrelude = `
export DOCKER_HOST=unix:///run/docker/sock I=clove.test/agent:1
trap 'docker rm -f -v "$N" "$N-2" >/dev/null 2>&1' EXIT
run() { docker run --rm --runtime "$R" "$@"; }
up() { docker run -d --runtime "$R" --name "$N" "$@" >/dev/null && grep -qm1 up < <(docker logs -f "$N"); }
event() { head -n "$1" < <(docker events --since 0 --filter container="$N" --filter event="$2" --format "$2") ; }
`

func startDocker(t *testing.T) {
	t.Helper()
	config := write(t, "daemon.json", `{"runtimes": {"clove": {"path": "/opt/clove/clove-oci"}}}`)
	startDaemon(t, "dockerd", "--config-file", config, "-H", "unix:///run/docker/sock", "--pidfile", "/run/docker/pid",
		"--data-root", "/run/docker/data", "--exec-root", "/run/docker/exec", "--userland-proxy=false")
	image := t.TempDir() + "/image.tar"
	archive(t, image, agentImage)
	if _, stderr := shell(t, dockerPrelude+"docker load -q -i "+image); stderr != "" {
		t.Fatal(stderr)
	}
}

func TestDocker(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		startDocker(t)
		for _, rows := range [][]row{dockerRuns, dockerLives, dockerLimits, dockerWorld} {
			try(t, dockerPrelude, rows)
		}
	})
}

// dockerRuns is how a command ends.
var dockerRuns = []row{
	{name: "info", script: `docker info -f '{{json .Runtimes}}' | grep -o clove-oci; run --name $N $I echo $R; docker create --runtime $R --name $N-2 $I true >/dev/null; docker inspect -f '{{.HostConfig.Runtime}}' $N-2`,
		want: `clove-oci\nrunc\nrunc`, clove: `clove-oci\nclove\nclove`},
	{name: "unknown runtime", script: `docker run --rm --runtime absent $I true 2>&1 | grep -o 'Unknown runtime specified absent'`, want: `Unknown runtime specified absent`},
	{name: "streams", script: `echo in | run -i $I sh -c 'cat; echo err >&2' 2>/tmp/$N; cat /tmp/$N`, want: `in\nerr`},
	{name: "exit statuses", want: `0 7 137 143 126 127`, script: `
		for c in 'true' 'exit 7' 'kill -9 $$' 'exec sh -c "trap \"exit 143\" TERM; kill $$"'; do run $I sh -c "$c"; echo -n "$? "; done
		run $I /etc/plain 2>/dev/null; echo -n "$? "; run $I absent 2>/dev/null; echo $?`},
	{name: "words of a failed start", want: `exec: "absent": executable file not found in \$PATH: unknown\nexec: "/etc/plain": permission denied: unknown`, script: `
		for c in absent /etc/plain; do run $I $c 2>&1 | grep -oE 'exec: .*unknown'; done`},
	{name: "user, workdir, environment, hostname", script: `run -u mallory -w /srv -e A=b -h here $I sh -c 'id -u; id -g; echo $PWD $A $(hostname)'`, want: `1000\n1000\n/srv b here`},
	{name: "a terminal", script: `run -t $I sh -c 'tty; test -t 0 && test -t 1 && echo both' | tr -d '\r'`, want: `/dev/console|/dev/pts/0\nboth`},
	{name: "logs", script: `docker run --runtime $R --name $N $I sh -c 'echo out; echo err >&2' >/dev/null 2>&1; docker logs $N 2>/dev/null; docker logs $N 2>&1 >/dev/null`, want: `out\nerr`},
	{name: "init", script: `run --init $I sh -c 'cat /proc/1/comm; (sh -c "sleep 0 &"); echo ran'; run $I cat /proc/1/comm`, want: `docker-init\nran\ncat`},
}

// dockerLives is what may be done to a container that runs.
var dockerLives = []row{
	{name: "exec", want: `in 5 1000 /srv b\n126 127\ndetached`, script: `
		up $I obey
		docker exec $N sh -c 'echo -n "in "; exit 5'; echo -n "$? "
		docker exec -u mallory -w /srv -e A=b $N sh -c 'echo $(id -u) $PWD $A'
		docker exec $N /etc/plain >/dev/null 2>&1; echo -n "$? "; docker exec $N absent >/dev/null 2>&1; echo $?
		docker exec -d $N sh -c 'echo detached >/proc/1/fd/1'; grep -om1 detached < <(docker logs -f $N)`},
	{name: "exec with a terminal", script: `up $I obey; docker exec -t $N sh -c 'tty; exit 4' | tr -d '\r'; echo ${PIPESTATUS[0]}`, want: `/dev/pts/[01]\n4`},
	{name: "exec reads", script: `up $I obey; echo word | docker exec -i $N cat`, want: `word`},
	{name: "stop", script: `up $I obey; docker stop $N; docker logs $N; docker wait $N`, want: `stop-\w+\nup\ngot TERM\n3`},
	{name: "stop of one that does not listen", script: `up $I stubborn; docker stop -t 1 $N >/dev/null; docker wait $N`, want: `137`},
	{name: "kill", script: `up $I obey; docker kill -s USR1 $N >/dev/null; grep -om1 'got USR1' < <(docker logs -f $N); docker kill $N >/dev/null; docker wait $N`, want: `got USR1\n137`},
	{name: "pause", want: `paused\nrunning\nstill`, script: `
		up $I obey; docker pause $N >/dev/null; docker inspect -f '{{.State.Status}}' $N
		docker unpause $N >/dev/null; docker inspect -f '{{.State.Status}}' $N; docker exec $N echo still`},
	{name: "top", script: `up $I obey; docker top $N -o pid,args | grep -c obey`, want: `1`},
	{name: "stats", script: `up -m 64m $I obey; docker stats --no-stream --format '{{.PIDs}} {{.MemUsage}}' $N`, want: `[12] [1-9][0-9.]*[KM]iB / 64MiB`},
	{name: "restart", script: `up $I obey; docker restart $N >/dev/null; docker inspect -f '{{.State.Running}}' $N; docker stop $N >/dev/null`, want: `true`},
	{name: "restart policy", want: `2 false 1`, script: `
		docker run -d --restart on-failure:2 --runtime $R --name $N $I sh -c 'exit 1' >/dev/null
		event 3 die >/dev/null; docker wait $N >/dev/null; docker inspect -f '{{.RestartCount}} {{.State.Running}} {{.State.ExitCode}}' $N`},
	{name: "health", want: `health_status: healthy\nhealth_status: unhealthy`, script: `
		up --health-cmd 'cat /srv/well' --health-interval 100ms --health-retries 1 $I sh -c 'touch /srv/well; exec obey'
		event 1 'health_status: healthy'; docker exec $N rm /srv/well; event 1 'health_status: unhealthy'`},
	{name: "copy and changes", script: `up $I sh -c 'echo x >/srv/made; exec obey'; docker cp $N:/srv/made - | tar -xO; docker diff $N | grep made`, want: `x\nA /srv/made`},
}

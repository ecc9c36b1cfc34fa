//go:build root

package engines

import (
	"testing"

	"clove.run/clove/internal/testhost"
)

const dockerPrelude = `
export DOCKER_HOST=unix:///run/docker/sock I=clove.test/agent:1
trap 'docker rm -f -v "$N" "$N-2" >/dev/null 2>&1' EXIT
engine() { docker "$@"; }
run() { docker run --rm --runtime "$R" "$@"; }
up() { docker run -d --runtime "$R" --name "$N" "$@" >/dev/null && grep -qm1 up < <(docker logs -f "$N"); }
# event COUNT KIND waits for that many events of the container.
event() { head -n "$1" < <(docker events --since 0 --filter container="$N" --filter event="$2" --format "$2"); }
`

// dockerNames is the part of daemon.json that a user writes, with the annotator before clove-oci.
const dockerNames = `"runtimes": {"clove": {"path": "/run/annotator/clove-oci"}}`

func startDocker(t *testing.T, config string) *daemon {
	t.Helper()
	return startDaemon(t, "dockerd", "--config-file", write(t, "daemon.json", config), "-H", "unix:///run/docker/sock", "--pidfile", "/run/docker/pid",
		"--data-root", "/run/docker/data", "--exec-root", "/run/docker/exec", "--userland-proxy=false")
}

func loadIntoDocker(t *testing.T) {
	t.Helper()
	image := t.TempDir() + "/image.tar"
	archive(t, image, agentImage)
	want(t, "", dockerPrelude+"docker load -q -i "+image+" >/dev/null || echo failed")
}

// TestDocker has one engine for all that Docker does with clove-oci: as its users' runtime, with the
// rules of annotations, and as the default runtime.
func TestDocker(t *testing.T) {
	inWorld(t, func(t *testing.T) {
		writeAnnotator(t)
		first := startDocker(t, "{"+dockerNames+"}")
		loadIntoDocker(t)
		for _, rows := range [][]row{sharedRuns, sharedLives, sharedLimits, dockerOnly, dockerReaches, dockerConfines} {
			try(t, dockerPrelude, rows)
		}
		if testhost.Lane() == testhost.LaneVM {
			return // too slow for the engine's own time limits
		}
		t.Run("rules", dockerRulesHold)
		first.stop(t)
		t.Run("default", dockerDefault)
	})
}

var dockerOnly = []row{
	{name: "info", script: `docker info -f '{{json .Runtimes}}' | grep -o clove-oci; docker create --runtime $R --name $N $I true >/dev/null; docker inspect -f '{{.HostConfig.Runtime}}' $N`,
		want: `clove-oci\nrunc`, clove: `clove-oci\nclove`},
	{name: "words of a failed start", want: `exec: "absent": executable file not found in \$PATH: unknown\nexec: "/etc/plain": permission denied: unknown`, script: `
		for c in absent /etc/plain; do run $I $c 2>&1 | grep -oE 'exec: .*unknown'; done`},
	{name: "init", script: `run --init $I sh -c 'cat /proc/1/comm; (sh -c "sleep 0 &"); echo ran'; run $I cat /proc/1/comm`, want: `docker-init\nran\ncat`},
	// Before its command executes, the process is called obey, too.
	{name: "top", script: `up $I obey; until docker top $N -o pid,args >/tmp/$N && grep -q 'sleep 600' /tmp/$N; do :; done; grep -c obey /tmp/$N`, want: `1`},
	{name: "stats", cgroup: true, script: `up -m 64m $I obey; docker stats --no-stream --format '{{.PIDs}} {{.MemUsage}}' $N`, want: `[12] [1-9][0-9.]*[KM]iB / 64MiB`},
	{name: "restart", script: `up $I obey; docker restart $N >/dev/null; docker inspect -f '{{.State.Running}}' $N; docker stop $N >/dev/null`, want: `true`},
	{name: "restart policy", want: `2 false 1`, script: `
		docker run -d --restart on-failure:2 --runtime $R --name $N $I sh -c 'exit 1' >/dev/null
		event 3 die >/dev/null; docker wait $N >/dev/null; docker inspect -f '{{.RestartCount}} {{.State.Running}} {{.State.ExitCode}}' $N`},
	{name: "health", want: `health_status: healthy\nhealth_status: unhealthy`, script: `
		up --health-cmd 'cat /srv/well' --health-interval 100ms --health-retries 1 $I sh -c 'touch /srv/well; exec obey'
		event 1 'health_status: healthy'; docker exec $N rm /srv/well; event 1 'health_status: unhealthy'`},
	{name: "copy and changes", script: `up $I sh -c 'echo x >/srv/made; exec obey'; docker cp $N:/srv/made - | tar -xO; docker diff $N | grep made`, want: `x\nA /srv/made`},
	// If the first process was killed, the shim of neither runtime always has time to report
	// the OOM kill.
	{name: "an OOM kill is told", cgroup: true, script: `up -m 32m --memory-swap 32m $I obey; docker exec $N eat; echo $?; event 1 oom`, want: `137\noom`},
	{name: "update of the rest", cgroup: true, want: `(20000|20000 100000)\n37`, script: `
		up $I obey; docker update --cpus 0.2 --pids-limit 37 $N >/dev/null
		docker exec $N sh -c 'limit cpu/cpu.cfs_quota_us cpu.max; limit pids/pids.max pids.max'`},
}

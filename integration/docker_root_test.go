//go:build root

package integration

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/internal/testhost"
)

// largest is the allowed size of the image above its base, in bytes as Docker counts them: the
// 60 MB that were the aim before agents had a socket and models, 1 MB for what serves the
// socket, 14 MB for the two programs of models, 7 MB for that of secrets, 7 MB for the agent loop, 17 MB for the two programs of tools, 14 MB for what else has come since (policies, mail and jobs,
// benchmarks and agents that start agents among it), and some MB, so that an update of one of Debian's packages does not break it.
const largest = 128e6

// inDocker runs scripts, one after the other, in one environment with an engine, the images of the
// runtime, and the function granted, which runs an image with the privileges of docs/docker.md. It
// returns the output of each.
func inDocker(t *testing.T, scripts ...string) []string {
	t.Helper()
	newHost(t)
	for _, name := range []string{"dockerd", "docker", "mmdebstrap", "tini"} {
		testhost.Tool(t, name)
	}
	stage := t.TempDir()
	for _, command := range [][]string{
		{"package/docker.sh", "stage", stage},
		{"testdata/base.sh", filepath.Join(stage, "base.tar")},
		{"cp", "testdata/docker.sh", "../examples/agent.py", stage},
		{"cp", "../deploy/kubernetes/Dockerfile", filepath.Join(stage, "node")},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command[0], err, out)
		}
	}
	const next = "==== the next script\n"
	out := inEngine(t, stage, "(\n"+strings.Join(scripts, "\n)\nprintf '"+strings.TrimSuffix(next, "\n")+"\\n'\n(\n")+"\n)")
	return strings.Split(out, next)
}

// TestDockerImage has one engine for all uses of the image.
func TestDockerImage(t *testing.T) {
	without := someCapabilities(t)
	out := inDocker(t, imageScript, daemonScript, withoutScript(without))
	if len(out) != 3 {
		t.Fatalf("%d outputs: %q", len(out), out)
	}
	t.Run("limits", func(t *testing.T) { imageWorks(t, out[0]) })
	t.Run("daemon", func(t *testing.T) {
		wantAll(t, out[1], "health_status: healthy\n", "worker\nsocket 660 0:0\n1000\n0\n", `"status": "signaled"`, "running\n")
	})
	t.Run("privileges", func(t *testing.T) { eachIsNeeded(t, without, out[2]) })
}

// imageScript follows docs/docker.md: the image's size, that nothing is missing in it, and
// that every limit works.
const imageScript = `
		docker inspect -f 'size {{.Size}}' debian:bookworm-slim clove
		docker run --rm clove zcat /usr/share/doc/clove/third-party.gz | grep -e ^====
		granted --rm clove clove doctor --json | ` + foundStates + `
		mkdir /srv/work && cp /opt/clove/agent.py /srv/work
		w='granted --rm -v /srv/work:/workspace clove clove run --rm'
		$w agent.py --memory 256M; echo agent $?; ls /srv/work
		$w --memory 64M -- python3 -c 'x = bytearray(200 << 20)'; echo memory $?
		$w --pids-limit 20 -- sh -c 'for i in $(seq 40); do sleep 9 & done 2>/dev/null'; echo pids $?
		$w --disk 16M -- sh -c 'head -c 64M /dev/zero >/tmp/x'; echo disk $?
		$w --timeout 1s -- sleep 60; echo timeout $?
		$w --cpu-time 1s -- sh -c 'while :; do :; done'; echo cpu-time $?
		$w --user root -- sh -c 'id -u; grep -h ^Seccomp: /proc/self/status; dd if=/proc/kcore count=1 >/dev/null 2>&1'; echo root $?
		$w --allow 192.0.2.80 -- python3 -c 'import socket; socket.create_connection(("192.0.2.81", 80), 5)'; echo gate $?
		granted --rm clove sh -c 'clove run --rm -- true && clove check' && echo clean`

func imageWorks(t *testing.T, out string) {
	wantAll(t, out, nothingMissing, "Written to /workspace/report.json", "agent 0\nagent.py\n", "memory limit of 64MiB reached", "memory 137\n",
		"pids limit of 20 refused", "disk limit of 16MiB reached", "timeout 124\n", "cpu-time 124\n", "0\nSeccomp:\t2\n",
		"root 1\n", "refused tcp://192.0.2.81:80", "clean\n")
	sizes := strings.SplitN(out, "\n", 3)
	base, errBase := strconv.Atoi(strings.TrimPrefix(sizes[0], "size "))
	image, errImage := strconv.Atoi(strings.TrimPrefix(sizes[1], "size "))
	if errBase != nil || errImage != nil || image-base > largest {
		t.Errorf("the image is %d bytes over its base of %d (%v, %v)", image-base, base, errBase, errImage)
	}
	t.Logf("%.1f MB over the base", float64(image-base)/1e6)
	testhost.Licensed(t, out, testhost.Binary(t, "clove"), testhost.Binary(t, "clove-init"), testhost.Binary(t, "clove-gate"))
}

// TestDockerNodeImage: both of the engine's builders build the image of the Kubernetes
// manifests from what is staged, and it has the licences of all its contents.
func TestDockerNodeImage(t *testing.T) {
	out := inDocker(t, `
		mkdir /srv/stage && cp -r /opt/clove/bin /opt/clove/third-party.gz /srv/stage
		for DOCKER_BUILDKIT in 0 1; do
			docker build -q -f /opt/clove/node -t clove-node:dev /srv/stage >/dev/null; echo built $DOCKER_BUILDKIT $?
			docker run --rm clove-node:dev sh -c 'clove-oci --version | head -n 1; clove node --help | grep -o -m 1 -e --restart; nsenter --version'
			docker run --rm clove-node:dev zcat /usr/share/doc/clove/third-party.gz | grep -e ^====
			docker image rm clove-node:dev >/dev/null
		done`)[0]
	for _, built := range []string{"built 0 0\n", "built 1 0\n"} {
		_, image, _ := strings.Cut(out, built)
		image, _, _ = strings.Cut(image, "built ")
		wantAll(t, image, "clove-oci version 0.0.0~dev\n--restart\nnsenter from util-linux")
		testhost.Licensed(t, image, testhost.Binary(t, "clove"), testhost.Binary(t, "clove-init"), testhost.Binary(t, "clove-gate"),
			testhost.Binary(t, "clove-oci"), testhost.Binary(t, "cloved"))
	}
}

// daemonScript: cloved in a container is healthy and is called from inside and through the
// socket. Its end ends the agents, with their records.
const daemonScript = `
		mkdir /run/clove-docker
		granted -d --name keeper --init --health-interval 1s -v state:/var/lib/clove -v /run/clove-docker:/run/clove clove:daemon >/dev/null
		grep -om1 'health_status: healthy' < <(docker events --since 0 --filter container=keeper --filter event='health_status: healthy')
		docker exec keeper clove run -d --name worker --restart always --memory 64M -- sh -c 'echo up; sleep 1000'
		CLOVE_RUN_DIR=/run/clove-docker /opt/clove/bin/clove ps | grep -o worker
		stat -c 'socket %a %u:%g' /run/clove-docker/clove.sock
		docker exec keeper clove exec worker -- id -u
		docker stop -t 60 keeper >/dev/null; docker wait keeper; docker rm keeper >/dev/null
		granted --rm -v state:/var/lib/clove clove clove inspect worker | grep -m1 '"status"'
		granted -d --name keeper --init -v state:/var/lib/clove clove:daemon >/dev/null
		docker exec keeper sh -c 'until clove ps 2>/dev/null | grep worker | grep -o running; do sleep 0.1; done'
		docker stop -t 60 keeper >/dev/null; docker logs keeper 2>&1 | tail -n 5`

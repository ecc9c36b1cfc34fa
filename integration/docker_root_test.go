//go:build root && !vm

package integration

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
)

// worldTime bounds a world, whatever hangs in it.
const worldTime = 90 * time.Second

// inDocker runs a script in a world with an engine, the images of the runtime, and
// granted, which runs one with what docs/docker.md says; what it writes is returned.
func inDocker(t *testing.T, script string) string {
	t.Helper()
	newHost(t)
	for _, name := range []string{"dockerd", "docker", "mmdebstrap", "tini"} {
		testhost.Tool(t, name)
	}
	stage, scratch := t.TempDir(), t.TempDir()
	for _, command := range [][]string{
		{"package/docker.sh", "stage", stage},
		{"testdata/base.sh", filepath.Join(stage, "base.tar")},
		{"cp", "testdata/docker.sh", "../examples/agent.py", stage},
	} {
		if out, err := exec.Command(command[0], command[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%s: %v\n%s", command[0], err, out)
		}
	}
	containers++
	name := fmt.Sprintf("docker-%d-%d", os.Getpid(), containers)
	ctx, cancel := context.WithTimeout(t.Context(), testhost.Patience(worldTime))
	defer cancel()
	world := exec.CommandContext(ctx, "testdata/container.sh", name, scratch, stage, "tini", "--",
		"bash", "/opt/clove/docker.sh", "exec 2>&1\n"+script)
	// The script itself stays, to take the container down.
	world.Cancel = func() error { return unix.Kill((&container{cmd: world}).first(), unix.SIGKILL) }
	out, err := world.Output()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	return string(out)
}

// TestDockerImage is the walk of docs/docker.md: what the image weighs, that nothing is
// missing in it, and that every limit holds.
func TestDockerImage(t *testing.T) {
	out := inDocker(t, `
		docker inspect -f 'size {{.Size}}' debian:bookworm-slim clove
		granted --rm clove clove doctor --json | grep -c '"missing"'
		mkdir /srv/work && cp /opt/clove/agent.py /srv/work
		w='granted --rm -v /srv/work:/workspace clove clove run --rm'
		$w agent.py --memory 256M; echo agent $?; ls /srv/work
		$w --memory 64M -- python3 -c 'x = bytearray(200 << 20)'; echo memory $?
		$w --pids-limit 20 -- sh -c 'for i in $(seq 40); do sleep 9 & done 2>/dev/null'; echo pids $?
		$w --disk 16M -- sh -c 'head -c 64M /dev/zero >/tmp/x'; echo disk $?
		$w --timeout 1s -- sleep 60; echo timeout $?
		$w --cpu-time 1s -- sh -c 'while :; do :; done'; echo cpu-time $?
		$w --user root -- sh -c 'id -u; grep -h ^Seccomp: /proc/self/status; dd if=/proc/kcore count=1 >/dev/null'; echo root $?
		$w --allow 192.0.2.80 -- python3 -c 'import socket; socket.create_connection(("192.0.2.81", 80), 5)'; echo gate $?
		granted --rm clove sh -c 'clove run --rm -- true && clove check' && echo clean`)
	wantAll(t, out, "\n0\n", "Written to /workspace/report.json", "agent 0\nagent.py\n", "memory limit of 64MiB reached", "memory 137\n",
		"pids limit of 20 refused", "disk limit of 16MiB reached", "timeout 124\n", "cpu-time 124\n", "0\nSeccomp:\t2\n",
		"root 1\n", "refused tcp://192.0.2.81:80", "clean\n")
	// Over the base in MB, as Docker counts them.
	sizes := strings.SplitN(out, "\n", 3)
	base, errBase := strconv.Atoi(strings.TrimPrefix(sizes[0], "size "))
	image, errImage := strconv.Atoi(strings.TrimPrefix(sizes[1], "size "))
	if errBase != nil || errImage != nil || image-base > 60e6 {
		t.Errorf("the image is %d bytes over its base of %d (%v, %v)", image-base, base, errBase, errImage)
	}
	t.Logf("%.1f MB over the base", float64(image-base)/1e6)
}

// TestDockerPrivileges: each of what is given is needed, and where it is missing
// clove says so and starts nothing.
func TestDockerPrivileges(t *testing.T) {
	out := inDocker(t, `
		granted --rm clove clove run --rm -- echo control
		for WITHOUT in $CAPABILITIES filter device rule; do
			echo "without $WITHOUT: $(granted --rm clove clove run --rm -- echo started)" ; done
		docker run --rm clove clove run --rm -- echo started; echo plain $?`)
	wantAll(t, out, "control\n", "pivot_root is refused", "seccomp=deploy/docker/seccomp.json", "open /dev/loop-control", "--device /dev/loop-control",
		"may open no loop device", "--device-cgroup-rule 'b 7:* rw'", "cannot make /sys/fs/cgroup", "--cap-add SYS_ADMIN", "plain 125\n")
	if strings.Contains(out, "started") {
		t.Errorf("an agent started without one of them\n%s", out)
	}
	_, list, _ := strings.Cut(readScript(t), "CAPABILITIES='")
	list, _, _ = strings.Cut(list, "'")
	for name := range strings.FieldsSeq(list) {
		wantAll(t, out, "root without CAP_"+name+":", "--cap-add "+name+" ")
	}
}

func readScript(t *testing.T) string {
	t.Helper()
	text, err := os.ReadFile("testdata/docker.sh")
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

// TestDockerDaemon: cloved in a container, healthy, called from inside and through the
// socket, and its end, which ends the agents with their records.
func TestDockerDaemon(t *testing.T) {
	out := inDocker(t, `
		mkdir /run/clove-docker
		granted -d --name keeper --init --health-interval 1s -v state:/var/lib/clove -v /run/clove-docker:/run/clove clove:daemon >/dev/null
		grep -om1 'health_status: healthy' < <(docker events --since 0 --filter container=keeper --filter event='health_status: healthy')
		docker exec keeper clove run -d --name worker --restart always --memory 64M -- sh -c 'echo up; sleep 1000'
		CLOVE_RUN_DIR=/run/clove-docker /opt/clove/bin/clove ps | grep -o worker
		docker exec keeper clove exec worker -- id -u
		docker stop -t 60 keeper >/dev/null; docker wait keeper; docker rm keeper >/dev/null
		granted --rm -v state:/var/lib/clove clove clove inspect worker | grep -m1 '"status"'
		granted -d --name keeper --init -v state:/var/lib/clove clove:daemon >/dev/null
		docker exec keeper sh -c 'until clove ps 2>/dev/null | grep worker | grep -o running; do sleep 0.1; done'
		docker stop -t 60 keeper >/dev/null; docker logs keeper 2>&1 | tail -n 5`)
	wantAll(t, out, "health_status: healthy\n", "worker\n1000\n0\n", `"status": "signaled"`, "running\n")
}

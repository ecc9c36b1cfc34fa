//go:build root

package integration

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"testing"
	"time"

	"clove.run/clove/internal/testhost"
)

// worldTime bounds a whole environment, whatever hangs in it.
const worldTime = 5 * time.Minute

// limitsHold is a script for a container in which all of clove must work, and whatHolds its
// expected output. Its first line says how many of its cgroups are visible under Docker's
// names.
const limitsHold = `
	echo "groups $(grep -c ':/docker/' /proc/self/cgroup)"
	clove doctor --json | ` + foundStates + `
	clove run --rm --memory 64M -- python3 -c 'x = bytearray(200 << 20)'; echo memory $?
	clove run --rm --disk 16M -- sh -c 'head -c 64M /dev/zero >/tmp/x'; echo disk $?
	clove run --rm --allow 192.0.2.80 -- python3 -c 'import socket; socket.create_connection(("192.0.2.81", 80), 5)'; echo gate $?
	clove run --rm --timeout 1s -- sleep 600; echo timeout $?
	clove check && echo clean`

var whatHolds = []string{nothingMissing, "memory limit of 64MiB reached", "memory 137\n", "disk limit of 16MiB reached",
	"refused tcp://192.0.2.81:80", "timeout 124\n", "clean\n"}

// inEngine runs a script with the functions of testdata/docker.sh over what is staged, and
// returns its output.
func inEngine(t *testing.T, stage, script string) string {
	t.Helper()
	containers++
	name := fmt.Sprintf("docker-%d-%d", os.Getpid(), containers)
	ctx, cancel := context.WithTimeout(t.Context(), testhost.Patience(worldTime))
	defer cancel()
	world := exec.CommandContext(ctx, "testdata/container.sh", name, t.TempDir(), stage, "tini", "--",
		"bash", "/opt/clove/docker.sh", "exec 2>&1\n"+script)
	world.Cancel = (&container{cmd: world}).kill
	var complaints bytes.Buffer // of the engine and the builds before the script
	world.Stderr = &complaints
	out, err := world.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &complaints, out)
	}
	return string(out)
}

//go:build root && !vm

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

// worldTime bounds a world, whatever hangs in it.
const worldTime = 3 * time.Minute

// inEngine runs a script of testdata/docker.sh's over what is staged; what it writes is returned.
func inEngine(t *testing.T, stage, script string) string {
	t.Helper()
	containers++
	name := fmt.Sprintf("docker-%d-%d", os.Getpid(), containers)
	ctx, cancel := context.WithTimeout(t.Context(), testhost.Patience(worldTime))
	defer cancel()
	world := exec.CommandContext(ctx, "testdata/container.sh", name, t.TempDir(), stage, "tini", "--",
		"bash", "/opt/clove/docker.sh", "exec 2>&1\n"+script)
	world.Cancel = (&container{cmd: world}).kill
	var complaints bytes.Buffer // of what stands before the script: the engine, the builds
	world.Stderr = &complaints
	out, err := world.Output()
	if err != nil {
		t.Fatalf("%v\n%s%s", err, &complaints, out)
	}
	return string(out)
}

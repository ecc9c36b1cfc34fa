//go:build root

package oci

import (
	"encoding/json"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/oci"
)

// clove runs a command with the node's cloved, or with its store if cloved is down.
func (n *node) clove(args ...string) (out, errs string, ok bool) {
	n.t.Helper()
	cmd := exec.Command(testhost.Binary(n.t, "clove"), args...)
	cmd.Env = append(cmd.Environ(), "CLOVE_ROOT="+n.path("state"), "CLOVE_RUN_DIR="+n.path("run"))
	var stderr strings.Builder
	cmd.Stderr = &stderr
	text, err := cmd.Output()
	return string(text), stderr.String(), err == nil
}

// ran is a container with a record that has been removed.
func (n *node) ran(id, script string) {
	n.t.Helper()
	n.Must("run", "--bundle", n.Bundle(script, annotated(oci.AnnotationRecord, oci.RecordsDir+"/"+oci.RecordID+".json")), id)
}

// TestClovedKnowsOfAContainersEnd: the engine still controls the container.
func TestClovedKnowsOfAContainersEnd(t *testing.T) {
	n := newNode(t)
	t.Setenv("CLOVE_ROOT", n.path("state"))
	n.ran("before", "true") // cloved is down: there is only the file
	n.serve()
	if got := n.Do("run", "--bundle", n.Bundle("exit 7", annotated(recordAt("one.json")...)), "one"); got.Status != 7 {
		t.Fatalf("%+v", got)
	}
	var file agent.Record
	decode(t, filepath.Join(n.path("state"), "records", "one.json"), &file)
	out, errs, _ := n.clove("inspect", "oci+one")
	var run agent.Run
	if err := json.Unmarshal([]byte(out), &run); err != nil {
		t.Fatalf("%v: %s%s", err, out, errs)
	}
	if run.Record.ExitCode != 7 || run.Record.Status != file.Status || run.Container.ID != "one" || run.Container.Directory != filepath.Join(n.Root, "one") || run.Owner.UID != 0 {
		t.Errorf("%s", out)
	}
	if out, _, _ = n.clove("ps", "-a"); !strings.Contains(out, "oci+one") || strings.Contains(out, "before") {
		t.Errorf("%s", out)
	}
	if out, _, _ = n.clove("events", "--once"); !strings.Contains(out, "container-ended oci+one") || !strings.Contains(out, "exited 7") {
		t.Errorf("%s", out)
	}
	for _, command := range [][]string{{"restart", "oci+one"}, {"diff", "oci+one"}, {"exec", "oci+one", "true"}, {"rename", "oci+one", "mine"},
		{"logs", "oci+one"}, {"stop", "oci+one"}, {"cp", "oci+one:/etc/passwd", n.path("copied")}} {
		if out, errs, ok := n.clove(command...); ok || !strings.Contains(errs, "engine") {
			t.Errorf("%v: %s%s", command, out, errs)
		}
	}
	n.killCloved()
	for _, command := range [][]string{{"diff", "oci+one"}, {"apply", "--yes", "oci+one"}} {
		if out, errs, ok := n.clove(command...); ok || !strings.Contains(errs, "engine") {
			t.Errorf("without cloved, %v: %s%s", command, out, errs)
		}
	}
	n.serve()
	if out, errs, ok := n.clove("prune", "--yes"); !ok || strings.TrimSpace(out) != string(run.Spec.ID) {
		t.Errorf("%s%s", out, errs)
	}
	if _, _, ok := n.clove("inspect", "oci+one"); ok {
		t.Error("it is left")
	}
}

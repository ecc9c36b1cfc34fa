//go:build root

package integration

import (
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"clove.run/clove/bench"
)

// A member of cloved's group runs the smoke suite through cloved, with the same results as
// root, and verifies them. With cloved gone, the error says what is missing.
func TestBenchByAMember(t *testing.T) {
	d := newClovedFor(t, groupName)
	suite := userDir(t, nil)
	if out, err := copyTree(filepath.Join("..", "suites", "smoke"), suite); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	results := filepath.Join(userDir(t, nil), "results")
	group := []uint32{groupID}
	r := d.as(memberUID, group, "bench", "run", "--results", results, suite)
	if r.code != 0 || !strings.Contains(r.stderr, "perfect: 3 of 3 passed") || !strings.Contains(r.stderr, "lazy: 0 of 3 passed") {
		t.Fatalf("%d\n%s", r.code, r.stderr)
	}
	m, err := bench.ReadManifest(results)
	if err != nil {
		t.Fatal(err)
	}
	for _, k := range m.Enforced[:6] {
		if !k.Enforced {
			t.Errorf("%+v", k)
		}
	}
	if r := d.as(memberUID, group, "bench", "verify", results, suite); r.code != 0 || !strings.Contains(r.stdout, "6 graded again, 0 not") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	kept := userDir(t, map[string]string{"suite.yaml": "version: 1\nname: s\nrelease: '1'\nenvironments: [{name: own, root: kept}]\n" +
		"tasks: [{name: t, instruction: x, environment: own, grade: {command: ['true']}}]\nagents: [{name: a, command: ['true']}]\n"})
	if r := d.as(memberUID, group, "bench", "run", "--results", filepath.Join(results, "x"), kept); r.code != 1 || !strings.Contains(r.stderr, "which only root can run") {
		t.Errorf("a root that is kept: %d, %s", r.code, r.stderr)
	}
	if r := d.as(memberUID, group, "ps", "-a", "-q"); r.stdout != "" {
		t.Errorf("runs are left: %s", r.stdout)
	}
	if r := d.as(strangerUID, nil, "bench", "run", "--results", filepath.Join(suite, "x"), suite); r.code != 1 || !strings.Contains(r.stderr, "you may not use cloved") {
		t.Errorf("a stranger: %d, %s", r.code, r.stderr)
	}
}

// copyTree gives the member a copy of a folder.
func copyTree(from, to string) (string, error) {
	out, err := exec.Command("sh", "-c", `cp -r "$1/." "$2" && chown -R "$3:$3" "$2"`, "copy", from, to, strconv.Itoa(memberUID)).CombinedOutput()
	return string(out), err
}

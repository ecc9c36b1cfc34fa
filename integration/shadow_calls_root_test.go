//go:build root

package integration

import (
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// A list of programs is seen at each execution, by the file that the kernel would execute: links lead to it. As
// the run's own it refuses exactly what was counted. The control is the same with all of it in the list.
func TestAShadowSeesPrograms(t *testing.T) {
	h := newHost(t)
	folder := t.TempDir()
	program, err := os.ReadFile("/bin/true")
	if err != nil {
		t.Fatal(err)
	}
	err = errors.Join(os.Chmod(folder, 0o755), os.WriteFile(filepath.Join(folder, "tool"), program, 0o755),
		os.WriteFile(filepath.Join(folder, "text"), []byte("x"), 0o644), os.Symlink("/usr/bin/env", filepath.Join(folder, "link")))
	if err != nil {
		t.Fatal(err)
	}
	const script = `cd /work; /usr/bin/id -u >/dev/null && echo id; for i in 1 2; do /usr/bin/env true && echo env; done
		./link true && echo link; ./tool && echo tool; ./text; ./nothing; true`
	list := func(name, programs string) string {
		return policyFile(t, name, "files: {root: read-only, execute: [/bin/sh, /usr/bin/id"+programs+"]}\n")
	}
	run := func(flags ...string) result {
		return h.agent(append(flags, "-v", folder+":/work:ro"), "/bin/sh", "-c", script)
	}
	strict := list("strict", "")
	watched, under := run("--policy-shadow", strict), run("--policy", strict)
	watched.want(t, agent.StatusExited, 0, "id\nenv\nenv\nlink\ntool\n")
	under.want(t, agent.StatusExited, 0, "id\n")
	use := watched.record.Shadow
	got, want := refusedWords(use.Denials), refusedWords(under.record.Denials)
	// Under the list env never comes to execute true.
	got = slices.DeleteFunc(got, func(word string) bool { return strings.Contains(word, "/true ") })
	if !slices.Equal(got, want) || len(want) != 2 {
		t.Errorf("the shadow said\n%s\nand the policy refused\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if d := denialAmong(use.Denials, agent.DenialExec, "/usr/bin/env"); d == nil || d.Count != 3 || d.Rule != "files.execute" || d.Errno != "EACCES" || d.Call == nil || d.Program == "" {
		t.Errorf("%+v", d)
	}
	if len(use.Unseen) != 0 || len(watched.record.Denials) != 0 {
		t.Errorf("unseen %v, refused %+v", use.Unseen, watched.record.Denials)
	}
	all := run("--policy-shadow", list("wide", ", /usr/bin/env, /usr/bin/true, /work/tool"))
	if all.want(t, agent.StatusExited, 0, "id\nenv\nenv\nlink\ntool\n"); all.record.Shadow.Refused != 0 {
		t.Errorf("control: %+v", all.record.Shadow.Denials)
	}
	bad := run("--policy-shadow", policyFile(t, "bad", "files: {root: read-only, execute: [/usr/bin/id]}\n"))
	if bad.code != agent.ExitStartFailed || !strings.Contains(bad.stderr, "--policy-shadow") {
		t.Errorf("a list without the command: %d, %s", bad.code, bad.stderr)
	}
}

func denialAmong(all []agent.Denial, kind, target string) *agent.Denial {
	return denialOf(agent.Record{Denials: all}, kind, target)
}

// shadowFlood makes calls and files that minimal refuses, from four processes at once, and each file has another name.
// It says when there were more names than a record has.
const shadowFlood = `for i in 1 2 3; do /usr/bin/perl -e 'while (1) { syscall(140, 0, 0); syscall(145, 0) }' & done
	/usr/bin/perl -e '$| = 1; for ($n = 0;; $n++) { mkdir("/home/agent/$n"); rmdir("/home/agent/$n"); print "enough\n" if $n == 250 }' & wait`

// TestAFloodUnderAShadowIsPaced: an agent that makes nothing but calls that its shadow would refuse costs its
// supervisor a share of one processor, cloved answers meanwhile, and the record stays small. On a busy machine the
// share is small without a bound as well; that the bound itself holds is TestPace's.
func TestAFloodUnderAShadowIsPaced(t *testing.T) {
	d := newCloved(t)
	d.detach("flood", shadowFlood, "--policy-shadow", "minimal")
	pids := d.supervisors()
	if len(pids) != 1 {
		t.Fatalf("supervisors %v", pids)
	}
	until(t, "the flood is seen", func() bool { return usedBy(t, pids[0]) > 600*time.Millisecond })
	before, from := usedBy(t, pids[0]), time.Now()
	time.Sleep(3 * time.Second) // what is measured is a rate
	asked := time.Now()
	d.ok("ps")
	answered := time.Since(asked)
	used, took := usedBy(t, pids[0])-before, time.Since(from)
	share := used.Seconds() / took.Seconds()
	t.Logf("%.0f%% of a processor; cloved answered in %s", 100*share, answered)
	if share > 0.95 {
		t.Errorf("the supervisor uses %.0f%% of a processor", 100*share)
	}
	if limit := testhost.Patience(10 * time.Second); answered > limit {
		t.Errorf("cloved answered in %s", answered)
	}
	until(t, "there are more names than a record has", func() bool { return strings.Contains(d.ok("logs", "flood"), "enough") })
	d.ok("stop", "-t=1s", "flood")
	var run agent.Run
	text := d.ok("inspect", "flood")
	if err := json.Unmarshal([]byte(text), &run); err != nil || run.Record == nil || run.Record.Shadow == nil {
		t.Fatalf("%v: %s", err, text)
	}
	use := run.Record.Shadow
	if len(use.Denials) > agent.ShadowDenialsMost || use.Others == 0 || use.Refused < 1000 || len(run.Record.Denials) != 0 {
		t.Errorf("%d of %d, others %d; refused %+v", len(use.Denials), use.Refused, use.Others, run.Record.Denials)
	}
	if len(text) > 1<<20 {
		t.Errorf("the record has %d bytes", len(text))
	}
}

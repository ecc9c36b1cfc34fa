//go:build root

package integration

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// computation computes with threads and a file, and then makes a process and sockets. It prints
// the errno of each attempt, and how many filters hold it.
const computation = `
import json, math, os, socket, subprocess, tempfile, threading
results = []
threads = [threading.Thread(target=lambda n=n: results.append(math.factorial(n))) for n in range(4)]
for t in threads: t.start()
for t in threads: t.join()
with tempfile.NamedTemporaryFile("w+") as f:
    json.dump(sorted(results), f); f.flush(); f.seek(0)
    assert json.load(f) == [1, 1, 2, 6]
def attempt(do):
    try: do()
    except OSError as e: return e.errno
    return 0
def fork():
    if os.fork() == 0: os._exit(0)
    os.wait()
filters = [l.split()[1] for l in open("/proc/self/status") if l.startswith("Seccomp_filters")]
print(json.dumps({"filters": int(filters[0]), "fork": attempt(fork), "run": attempt(lambda: subprocess.run(["/bin/true"])),
    "unix": attempt(lambda: socket.socket(socket.AF_UNIX)), "pair": attempt(socket.socketpair)}))
`

// computed runs the computation and reads what it printed.
func computed(t *testing.T, output string) map[string]int {
	t.Helper()
	answers := map[string]int{}
	if err := json.Unmarshal([]byte(output), &answers); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	return answers
}

// notPermitted checks that the program was under as many filters as the control, and every
// attempt failed.
func notPermitted(t *testing.T, name string, free, held map[string]int) {
	t.Helper()
	if held["filters"] != free["filters"] {
		t.Errorf("%s: %d filters, the control has %d", name, held["filters"], free["filters"])
	}
	for _, what := range []string{"fork", "run", "unix", "pair"} {
		if errno, there := held[what]; !there || errno != int(unix.EPERM) {
			t.Errorf("%s: %s: errno %d, want EPERM", name, what, errno)
		}
	}
}

// TestMinimalLetsPythonCompute: the same computation under strict, which allows processes and
// local sockets, is the control.
func TestMinimalLetsPythonCompute(t *testing.T) {
	h := newHost(t)
	command := []string{"/usr/bin/python3", "-c", computation}
	strict := h.agent([]string{"--seccomp=strict"}, command...)
	free := computed(t, strict.stdout)
	for _, what := range []string{"fork", "run", "unix", "pair"} {
		if errno, there := free[what]; !there || errno != 0 {
			t.Errorf("control: %s: errno %d", what, errno)
		}
	}
	for _, flags := range [][]string{nil, {"--user=root"}, {"-t"}, {"-v", t.TempDir() + ":/shared"}} {
		r := h.agent(append([]string{"--seccomp=minimal"}, flags...), command...)
		if r.code != 0 || r.record.Status != agent.StatusExited {
			t.Fatalf("%v: %s, %d: %s%s", flags, r.record.Status, r.code, r.stdout, r.stderr)
		}
		notPermitted(t, strings.Join(flags, " "), free, computed(t, r.stdout))
		if r.record.Enforced[agent.ControlSeccomp] != "minimal" {
			t.Errorf("%v: enforced %v", flags, r.record.Enforced)
		}
	}
}

// TestMinimalAsADocument: what `clove seccomp show minimal --json` writes, given back, is the
// same filter in the same place.
func TestMinimalAsADocument(t *testing.T) {
	h := newHost(t)
	shown := h.clove("seccomp", "show", "minimal", "--json")
	path := filepath.Join(t.TempDir(), "minimal.json")
	if err := os.WriteFile(path, []byte(shown.stdout), 0o644); err != nil {
		t.Fatal(err)
	}
	command := []string{"/usr/bin/python3", "-c", computation}
	free := computed(t, h.agent([]string{"--seccomp=strict"}, command...).stdout)
	r := h.agent([]string{"--seccomp=" + path}, command...)
	if r.code != 0 {
		t.Fatalf("%d: %s", r.code, r.stderr)
	}
	notPermitted(t, "document", free, computed(t, r.stdout))
}

// TestMinimalReportsWhatCannotBeExecuted: the agent's filter is on when execve fails, and the
// reason still comes out. The control is the same under strict.
func TestMinimalReportsWhatCannotBeExecuted(t *testing.T) {
	h := newHost(t)
	folder := t.TempDir()
	if err := os.WriteFile(filepath.Join(folder, "text"), []byte("no program\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, profile := range []string{"strict", "minimal"} {
		r := h.agent([]string{"--seccomp=" + profile, "-v", folder + ":/shared:ro"}, "/shared/text")
		if r.code != agent.ExitCannotExec || r.record.Error == nil || r.record.Error.Errno != unix.ENOEXEC.Error() {
			t.Errorf("%s: exit %d, %v\n%s", profile, r.code, r.record.Error, r.stderr)
		}
	}
}

// TestMinimalHoldsWhatEntersLater: a process of clove exec is under the same filter.
func TestMinimalHoldsWhatEntersLater(t *testing.T) {
	d := newCloved(t)
	for _, profile := range []string{"strict", "minimal"} {
		d.detach(profile, "exec sleep 1000", "--seccomp="+profile)
	}
	command := []string{"--", "/usr/bin/python3", "-c", computation}
	free := d.clove(append([]string{"exec", "strict"}, command...)...)
	held := d.clove(append([]string{"exec", "minimal"}, command...)...)
	if held.code != 0 {
		t.Fatalf("%d: %s", held.code, held.stderr)
	}
	notPermitted(t, "exec", computed(t, free.stdout), computed(t, held.stdout))
}

//go:build root

package integration

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/doctest"
	"clove.run/clove/internal/testhost"
)

// manual is a host on which docs/operations.md is followed as it is printed: a mount namespace
// with clove's default directories, empty, and with stand-ins for sudo, systemctl and the date.
type manual struct {
	t    *testing.T
	pid  string // of the process that keeps the namespace
	path string // PATH
	seen string // file with the units that systemctl was given
}

// standIns take the place of programs that a host of the tests lacks or must not use. That of
// systemctl ends supervisors as systemd does: all of the unit get TERM.
var standIns = map[string]string{
	"sudo": `exec "$@"`,
	"date": `[ "$*" = +%F ] && echo 2026-01-31 || exec /bin/date "$@"`,
	"systemctl": `echo "$@" >>"$SEEN"
verb=$1; shift
mine() { for p in $(pgrep -f "$1"); do
	[ "$(readlink /proc/$p/ns/mnt)" = "$(readlink /proc/self/ns/mnt)" ] && grep -q '^State:.[^Z]' /proc/$p/status && echo $p
done 2>/dev/null; true; }
end() { p=$(mine "$1"); [ -z "$p" ] || kill $p; while [ -n "$(mine "$1")" ]; do sleep 0.02; done; }
for unit; do case "$verb $unit" in
	"stop clove.service") end '^([^ ]*/)?cloved$';;
	"stop clove-agents.service") end '^([^ ]*/)?clove supervise ';;
	"start clove.service") setsid cloved </dev/null >>/run/log 2>&1 & until grep -Eq 'msg=ready|^clove' /run/log; do sleep 0.02; done; : >/run/log;;
	"stop clove.socket"|"start clove-agents.service"|"reset-failed clove.service"|"reset-failed clove.socket") ;;
	*) echo "no unit for: $verb $unit" >&2; exit 1;;
esac; done`,
}

func newManual(t *testing.T) *manual {
	t.Helper()
	testhost.Root(t)
	testhost.NoResidue(t)
	shims := t.TempDir()
	for name, text := range standIns {
		if err := os.WriteFile(filepath.Join(shims, name), []byte("#!/bin/sh\n"+text+"\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	m := &manual{t: t, path: shims + ":" + os.Getenv("CLOVE_BIN_DIR") + ":" + os.Getenv("PATH"), seen: filepath.Join(shims, "seen")}
	keeper := exec.Command("unshare", "--mount", "--propagation", "private", "sh", "-ec",
		`for d in /var/lib /var/backups /run; do mount -t tmpfs -o mode=755 tmpfs $d; done; mkdir -m 700 /var/lib/clove; echo ready; exec sleep infinity`)
	out, err := keeper.StdoutPipe()
	if err == nil {
		err = keeper.Start()
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { keeper.Process.Signal(unix.SIGKILL); keeper.Wait() })
	if text := make([]byte, 5); true {
		if _, err := out.Read(text); err != nil || string(text) != "ready" {
			t.Fatalf("%q, %v", text, err)
		}
	}
	m.pid = strconv.Itoa(keeper.Process.Pid)
	m.ok("systemctl start clove.service")
	t.Cleanup(func() {
		m.try("clove rm -f $(clove ps -aq)")
		m.try("systemctl stop clove.service")
	})
	return m
}

// try types one line.
func (m *manual) try(line string) result {
	m.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	cmd := exec.CommandContext(ctx, "nsenter", "--target", m.pid, "--mount", "--wd=/", "sh", "-c", line)
	cmd.Env = append(os.Environ(), "PATH="+m.path, "SEEN="+m.seen)
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	_ = cmd.Run() // the status says it
	return result{stdout: out.String(), stderr: errs.String(), code: cmd.ProcessState.ExitCode()}
}

func (m *manual) ok(line string) string {
	m.t.Helper()
	r := m.try(line)
	if r.code != 0 {
		m.t.Fatalf("%s: %d\n%s%s", line, r.code, r.stdout, r.stderr)
	}
	return r.stdout
}

// printed are the indented lines of docs/operations.md behind a mark, up to the next text that
// ends with until.
func printed(t *testing.T, mark, until string) (lines []string) {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(doctest.Root(t), "docs/operations.md"))
	if err != nil {
		t.Fatal(err)
	}
	_, section, found := strings.Cut(string(text), mark)
	section, _, ends := strings.Cut(section, until)
	for line := range strings.Lines(section) {
		if command, is := strings.CutPrefix(line, "    "); is {
			lines = append(lines, strings.TrimSpace(command))
		}
	}
	if !found || !ends || len(lines) == 0 {
		t.Fatalf("docs/operations.md has no commands behind %q", mark)
	}
	return lines
}

// lostID is the one directory below lost/ whose layer has this file in its workspace.
func (m *manual) lostID(file string) string {
	m.t.Helper()
	for _, id := range strings.Fields(m.ok("ls /var/lib/clove/lost")) {
		if strings.Contains(m.try("clove diff lost/"+id).stdout, "A /workspace/"+file+"\n") {
			return id
		}
	}
	m.t.Fatalf("no layer below lost/ has %s: %s", file, m.ok("clove check"))
	return ""
}

// TestTheManualsRestore types what docs/operations.md prints for a backup, a restore and a damaged
// store. No agent's work is deleted: neither that of runs which the older store does not have, nor
// that of a run which it has without its layer. The control, in the same folder and by the same
// start of cloved: the same image is deleted if it says that no agent wrote to it; and removed
// runs are not in lost/.
func TestTheManualsRestore(t *testing.T) {
	m := newManual(t)
	m.ok("mkdir /run/ws /run/again")
	worker := func(name, script string) (id string) {
		t.Helper()
		out := m.ok("clove run -d --name " + name + " --workspace /run/ws -- sh -c '" + script + "' && clove wait " + name)
		return strings.Fields(out)[0]
	}
	worker("early", "echo early >early")
	worker("removed", "echo removed >removed; echo output")
	m.ok(`clove run -d --name again --workspace /run/again -- sh -c '[ ! -e go ] || echo work >again' && clove wait again`)
	m.ok("clove run -d --name live --workspace /run/ws -- sh -c 'echo live >live; sleep 1000'")
	steps := printed(t, "## Back up and restore", "## Recover")
	m.ok(steps[0])

	later := "/var/lib/clove/layers/" + worker("later", "echo later >later; echo output")
	m.ok("touch /run/again/go; clove restart again && clove wait again; clove rm removed")
	m.ok("clove run -d --rm --name gone --workspace /run/ws -- sh -c 'echo gone >gone'; clove wait gone || true")
	control := "/var/lib/clove/layers/0123456789abcdef"
	m.ok("cp " + later + ".img " + control + ".img && cp " + later + ".json " + control + ".starting")
	for _, line := range steps[1:] {
		m.ok(line)
	}
	if names := m.ok("clove ps -a"); !strings.Contains(names, "early") || !strings.Contains(names, "removed") || strings.Contains(names, "later") {
		t.Fatalf("the restored store has\n%s", names)
	}
	if r := m.try("ls " + control + "*"); r.code == 0 {
		t.Errorf("control: recovery deletes nothing at all: %s", r.stdout)
	}
	m.holdsWork("early", map[string]string{"later": "later", "again": "work"})
	if state := m.ok("clove ps -a --filter name=live --format '{{.State}}'"); state != "ended\n" {
		t.Errorf("a run that was live when the copy was made is %s", state)
	}
	if r := m.try("clove diff removed"); r.code == 0 || !strings.Contains(r.stderr, "hint:") {
		t.Errorf("diff of a layer that was removed after the backup: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	m.ok("clove restart again && clove wait again && clove diff again | grep again")

	steps = printed(t, "**The store is damaged.**", "The layers and logs")
	for _, line := range steps {
		m.ok(line)
	}
	if names := m.ok("clove ps -aq"); names != "" {
		t.Errorf("a new store has %s", names)
	}
	m.holdsWork("", map[string]string{"early": "early", "live": "live", "later": "later", "again": "work"})
	if units, err := os.ReadFile(m.seen); err != nil || !strings.Contains(string(units), "stop clove.service clove.socket clove-agents.service\n") {
		t.Errorf("the manual stops %s, %v", units, err)
	}
	if r := m.try("clove gc --lost </dev/null"); r.code == 0 {
		t.Error("it removes without a question")
	}
	m.ok("clove gc --lost --yes")
	if text := m.ok("clove check"); text != "" {
		t.Errorf("left: %s", text)
	}
}

// holdsWork checks that kept, a run, and each lost layer still have their files, after another
// start of cloved and a gc, too, and that the lost ones can be applied.
func (m *manual) holdsWork(kept string, lost map[string]string) {
	m.t.Helper()
	for range 2 {
		if kept != "" && m.ok("clove diff "+kept) != "A /workspace/"+kept+"\n" {
			m.t.Errorf("the layer of %s: %s", kept, m.ok("clove diff "+kept))
		}
		for file, text := range lost {
			id := m.lostID(file)
			m.ok("mkdir -p /run/to && clove apply --yes --to /run/to lost/" + id)
			if got := m.ok("cat /run/to/" + file + "; rm -r /run/to"); strings.TrimSpace(got) != text {
				m.t.Errorf("%s of lost/%s: %q", file, id, got)
			}
		}
		for _, removed := range []string{"removed", "gone"} {
			if text := m.ok("clove check"); strings.Contains(text, " of "+removed+",") {
				m.t.Errorf("%s was removed, and is lost: %s", removed, text)
			}
		}
		m.ok("grep -rq output /var/lib/clove/lost/" + m.lostID("later") + "/log/log")
		m.ok("clove gc && systemctl stop clove.service && systemctl start clove.service")
	}
}

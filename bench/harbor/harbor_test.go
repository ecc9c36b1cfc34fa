package harbor

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/bench/suite"
)

// folder makes a task that can be imported, with some files changed.
func folder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := filepath.Join(t.TempDir(), "one")
	all := map[string]string{configFile: "version = \"1.0\"\n", instructionFile: "do it\n", dockerfile: "FROM x\n", testFile: "true\n", "environment/a.txt": "a"}
	for name, text := range files {
		all[name] = text
	}
	for name, text := range all {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

var hostBase = Options{Base: []string{"x", "debian:12"}}

// The suite that is written is one that clove bench reads, and everything of the task is in it.
func TestATaskBecomesASuite(t *testing.T) {
	t.Parallel()
	s, refused, err := Read("testdata/tasks", hostBase)
	if err != nil || len(refused) != 0 || s.Tasks() != 1 {
		t.Fatalf("%d tasks, %v, %v", s.Tasks(), refused, err)
	}
	to := filepath.Join(t.TempDir(), "suite")
	if err := s.Write(to); err != nil {
		t.Fatal(err)
	}
	read, err := suite.Load(to)
	if err != nil {
		t.Fatal(err)
	}
	task, e := read.Tasks[0], read.Environments[0]
	if task.Limits.Timeout != "60s" || task.Grade.Limits.Timeout != "30s" || e.Setup.Limits.Timeout != "60s" || task.Limits.Memory != "256M" || e.Disk != "64M" {
		t.Errorf("limits: %+v, %+v", task, e)
	}
	if !e.Kept() || e.Workdir != "/srv/list" || e.User != "root" || e.Variables["OWNER"] != "the team" || !strings.Contains(e.Note, "base system of the host") {
		t.Errorf("environment: %+v", e)
	}
	if g := task.Grade; g.At != "/tests" || g.Root != suite.RootKept || g.Score != suite.ScoreReward || g.Variables["WANTED"] != "3" || g.Network.Mode != "" {
		t.Errorf("grade: %+v", g)
	}
	if task.Solution.Variables["LINE"] != "third" || len(read.Agents) != 2 || !read.Agents[0].Solution {
		t.Errorf("solution: %+v, %+v", task.Solution, read.Agents)
	}
	for name, mode := range map[string]os.FileMode{"tests/test.sh": 0o755, "solution/solve.sh": 0o755, "setup/context/data/first.txt": 0o644, "setup/build.sh": 0o644} {
		if info, err := os.Stat(filepath.Join(to, tasksDir, "add-line", name)); err != nil || info.Mode().Perm() != mode {
			t.Errorf("%s: %v, %v", name, info, err)
		}
	}
	if err := s.Write(to); err == nil {
		t.Error("a folder that exists is written to")
	}
}

// Each refusal names its file and line.
func TestRefusals(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ file, text, want string }{
		{configFile, "[environment]\ncpus = 1\nspeed = 3\n", `task.toml line 3: there is no key "environment.speed" here`},
		{configFile, "x = \n", "task.toml line 1: "},
		{configFile, "[environment]\ngpus = 1\n", "task.toml: it needs a GPU"},
		{configFile, "[environment]\nos = \"windows\"\n", "task.toml: it is for windows"},
		{configFile, "[environment]\nmemory = \"much\"\n", `environment.memory: "much" is no size`},
		{configFile, "[environment]\nnetwork_mode = \"some\"\n", `network_mode: "some" is unknown`},
		{configFile, "[environment.healthcheck]\ncommand = \"true\"\n", "it has a healthcheck"},
		{configFile, "[[environment.mcp_servers]]\nname = \"a\"\n", "it has mcp_servers"},
		{configFile, "[[steps]]\nname = \"a\"\n", "it has steps"},
		{configFile, "[verifier]\nenvironment_mode = \"separate\"\n", "its verifier has an environment of its own"},
		{configFile, "[verifier.env]\nKEY = \"${KEY}\"\n", "verifier.env.KEY needs the caller's variable KEY"},
		{configFile, "[agent]\nuser = \"ann\"\n", "agent.user: another user than the image's"},
		{dockerfile, "FROM y\n", `nothing stands for the image "y"`},
		{dockerfile, "RUN true\n", "environment/Dockerfile line 1: RUN before FROM"},
		{dockerfile, "# only this\n", "environment/Dockerfile: it has no FROM"},
		{dockerfile, "FROM x\nFROM y\n", "line 2: a second FROM: stages are not translated"},
		{dockerfile, "FROM --platform=linux/arm64 x\n", `line 1: FROM for the platform "linux/arm64"`},
		{dockerfile, "FROM x\n\nENTRYPOINT [\"a\"]\n", `line 3: the instruction "ENTRYPOINT" is not translated`},
		{dockerfile, "FROM x\nSHELL [\"bash\"]\n", `line 2: the instruction "SHELL" is not translated`},
		{dockerfile, "FROM x\nRUN --mount=type=cache true\n", `line 2: RUN with the flag "--mount=type=cache"`},
		{dockerfile, "FROM x\nUSER ann\n", `line 2: USER: the name "ann" is known in the image only`},
		{dockerfile, "FROM x\nUSER 1000\nRUN true\n", `line 3: RUN as the user "1000"`},
		{dockerfile, "FROM x\nCOPY b.txt /\n", `line 2: COPY: there is no "b.txt" in environment`},
		{dockerfile, "FROM x\nCOPY ../task.toml /\n", `line 2: COPY: "../task.toml" leads out of environment`},
		{dockerfile, "FROM x\nCOPY --from=y a /\n", `line 2: COPY: cannot translate "--from=y a /"`},
		{dockerfile, "FROM x\nCOPY --chown=1:1 a.txt /\n", "line 2: COPY: cannot translate"},
		{dockerfile, "FROM x\nCOPY <<END /a\nx\nEND\n", "line 2: COPY: cannot translate"},
		{dockerfile, "FROM x\nADD https://x.example/a /\n", `line 2: ADD of "https://x.example/a"`},
		{dockerfile, "FROM x\nADD a.tar /\n", `line 2: ADD of "a.tar"`},
		{dockerfile, "FROM x\nRUN cat <<END\nx\n", "line 2: its here-document has no end"},
		{dockerfile, "# escape=`\nFROM x\n", "line 1: another escape character"},
		{dockerfile, "FROM x\nENV 1a=b\n", "line 2: ENV: cannot read"},
		{dockerfile, "FROM x\nENV a='b\n", "line 2: ENV: cannot read"},
		{"environment/docker-compose.yaml", "x", "environment/docker-compose.yaml: it is not translated"},
		{"environment/.dockerignore", "x", "environment/.dockerignore: it is not translated"},
		{testFile, "#!/bin/sh\n# curl is fine here\n\tcd /x && curl -s https://x.example\n", "tests/test.sh line 3: it calls curl, and graders have no network"},
	} {
		_, refused, err := Read(folder(t, map[string]string{c.file: c.text}), hostBase)
		if err != nil || len(refused) != 1 || !strings.Contains(refused[0].Why.Error(), c.want) {
			t.Errorf("%s %q: %v, %v, want %q", c.file, c.text, refused, err, c.want)
		}
	}
}

// What is missing is said, and a folder without tasks is an error.
func TestWhatIsNotThere(t *testing.T) {
	t.Parallel()
	for _, name := range []string{instructionFile, testFile, dockerfile} {
		dir := folder(t, nil)
		if err := os.Remove(filepath.Join(dir, name)); err != nil {
			t.Fatal(err)
		}
		if _, refused, err := Read(dir, hostBase); err != nil || len(refused) != 1 || refused[0].Why.Error() != name+": it is not there" {
			t.Errorf("%s: %v, %v", name, refused, err)
		}
	}
	for _, dir := range []string{t.TempDir(), "/nowhere"} {
		if _, _, err := Read(dir, hostBase); err == nil {
			t.Error(dir)
		}
	}
}

// A network is given where a list names hosts, and a public one only if the caller says so.
func TestNetworks(t *testing.T) {
	t.Parallel()
	public := map[string]string{PhaseAgent: AsStated, PhaseGrader: AsStated}
	list := "[environment]\nnetwork_mode = \"allowlist\"\nallowed_hosts = [\"a.example\"]\n"
	for _, c := range []struct {
		config        string
		asked         map[string]string
		agent, grader string
	}{
		{"", nil, "", ""},
		{"", public, "public", "public"},
		{"[environment]\nallow_internet = false\n", public, "", ""},
		{"[environment]\nallow_internet = false\n[verifier]\nnetwork_mode = \"public\"\n", public, "", "public"},
		{list, nil, "a.example", ""},
		{list, public, "a.example", "a.example"},
		{list, map[string]string{PhaseAgent: NoNetwork}, "", ""},
	} {
		o := hostBase
		o.Network = c.asked
		s, refused, err := Read(folder(t, map[string]string{configFile: c.config}), o)
		if err != nil || len(refused) > 0 {
			t.Fatal(refused, err)
		}
		said := func(n suite.Network) string { return n.Mode + strings.Join(n.Allow, ",") }
		if task := s.tasks[0].task; said(task.Network) != c.agent || said(task.Grade.Network) != c.grader {
			t.Errorf("%q, %v: %+v, %+v", c.config, c.asked, task.Network, task.Grade.Network)
		}
	}
}

// How a shell and a Dockerfile read texts.
func TestScripts(t *testing.T) {
	t.Parallel()
	dir := folder(t, map[string]string{"environment/d/in": "x", "environment/b.txt": "b"})
	for _, c := range []struct{ text, want string }{
		{"WORKDIR /a\nWORKDIR b\nRUN true", "cd '\\''/a/b'\\''\ntrue'"},
		{"RUN a && \\\n  # why\n\n  b", "\na &&   b'"},
		{"ARG V=1\nENV W=${V}2 X=${N:-3}\nRUN true", "export V='\\''1'\\''\nexport W='\\''12'\\''\nexport X='\\''3'\\''\n"},
		{"ENV P /x:$PATH\nRUN true", "/x:/usr/local/sbin"},
		{"RUN cat <<'END' > /f\nthe $text\nEND\nRUN next", "cat <<'\\''END'\\'' > /f\nthe $text\nEND'\n"},
		{"COPY a.txt /x/y", "'mkdir' '-p' '/x'\nstep 2 'cp' '-Rp' '/setup/context/a.txt' '/x/y'\n"},
		{"COPY *.txt /x", "'cp' '-Rp' '/setup/context/b.txt' '/x/'\n"},
		{"COPY d /x", "'cp' '-Rp' '/setup/context/d/.' '/x'\n"},
		{"COPY [\"a.txt\", \"b.txt\", \"/x/\"]", "'cp' '-Rp' '/setup/context/a.txt' '/x/'\n"},
		{"COPY . .", "'cp' '-Rp' '/setup/context/./.' '/'\n"},
		{"RUN echo it\\'s", "echo it\\'\\''s'\n"},
	} {
		m, err := translate("FROM x\n"+c.text+"\n", filepath.Join(dir, "environment"))
		if err != nil || !strings.Contains(m.script.String(), c.want) {
			t.Errorf("%q: %v\n%s", c.text, err, m.script.String())
		}
	}
}

func TestWords(t *testing.T) {
	t.Parallel()
	if got, whole := words(`a "b c"d 'e\' f\ g`); !whole || !slices.Equal(got, []string{"a", "b cd", `e\`, "f g"}) {
		t.Errorf("%q %v", got, whole)
	}
	for text, want := range map[string]string{"a.b c": "a-b-c", "..": "", strings.Repeat("x", 80): strings.Repeat("x", 63)} {
		if got := asWord(text); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

package rootfs

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestExecutedBy(t *testing.T) {
	t.Parallel()
	for program, paths := range map[string][]string{
		"git": {".git/hooks/pre-commit", ".git/hooks/any", ".git/hooks", ".git/config", ".GIT/Config", ".git/config.worktree", "sub/.git/config", ".git",
			"sub/.git", ".git/modules/lib/config", ".git/modules/lib/hooks/post-merge", ".git/worktrees/w/commondir", ".git/rebase-merge/git-rebase-todo", ".git/objects/info/alternates", ".git/modules/lib/objects/info/alternates", "bare/objects/info/alternates",
			"bare/HEAD", ".husky/pre-push", ".husky/_/husky.sh", "tools/commit-msg", "node_modules/x/.git/config", ".gitconfig"},
		"direnv":  {".envrc", "deep/down/.envrc"},
		"VS Code": {".vscode/tasks.json", ".vscode", ".v\u017fcode/tasks.json"},
		"a shell": {".bashrc"},
		"yarn":    {".yarn/releases/yarn.cjs"},
		"npm":     {".npmrc"},
		"clove":   {".venv/pyvenv.cfg"},
		"cargo":   {".cargo/config.toml"},
		"":        {"main.go", ".gitignore", ".gitattributes", ".git/HEAD", ".git/index", ".git/objects/aa/bb", ".git/objects/info/packs", ".git/refs/heads/config", ".git/logs/HEAD", "config", "hooks/use-state.ts", "node_modules/x/.vscode/settings.json", ".github/workflows/ci.yml", "pre-commit.md"},
	} {
		for _, path := range paths {
			if class, got := classify(path, TypeFile); class == ClassExecutable && got != program || class != ClassExecutable && program != "" {
				t.Errorf("%s: %s of %q, want %q", path, class, got, program)
			}
		}
	}
	if _, got := classify(".git/objects/info", TypeSymlink); got != "git" {
		t.Errorf("a link in .git: %q", got)
	}
	if _, got := classify(".vscode", TypeDir); got != "" {
		t.Errorf("a folder by itself: %q", got)
	}
}

// Each line of the list has a class, a source and a day, stands behind all of the classes that
// decide before it, and each of its names matches a path.
func TestConventions(t *testing.T) {
	t.Parallel()
	order := []Class{ClassExecutable, ClassInstructions, ClassOwn}
	last := 0
	for i, e := range readConventions() {
		rank := slices.Index(order, e.class)
		_, err := time.Parse(time.DateOnly, e.date)
		if rank < last || err != nil || e.source == "" || e.program == "" || len(e.names) == 0 {
			t.Errorf("line %d: %+v, %v", i+2, e, err)
		}
		last = rank
		for _, name := range e.names {
			path := "deep/" + strings.ReplaceAll(strings.TrimSuffix(name, "/"), "*", "x")
			if strings.HasSuffix(name, "/") {
				path += "/inside"
			}
			if found := listed(strings.Split(path, "/")); found == nil || slices.Index(order, found.class) > rank {
				t.Errorf("%s: %s matches %+v", name, path, found)
			}
		}
	}
}

// The names of the examination that were written without a word, and those of the next agent.
func TestNamesThatWereWrittenWithoutAWord(t *testing.T) {
	t.Parallel()
	for want, paths := range map[Class][]string{
		ClassExecutable: {"opencode.json", "opencode.jsonc", ".opencode/plugin/x.ts", ".hg/hgrc", ".jj/repo/config.toml", ".helix/languages.toml",
			".kiro/hooks/x.kiro.hook", ".windsurf/hooks.json", ".qwen/settings.json", ".roo/mcp.json", ".amazonq/mcp.json", ".junie/mcp/mcp.json", ".trae/mcp.json",
			".crush.json", ".continue/config.yaml", ".aider.conf.yml", ".factory/hooks.json", ".augment/settings.json", "mcp.json", "sub/x.code-workspace",
			"x.sublime-project", ".local.vimrc", ".ycm_extra_conf.py", ".bazelrc", ".mvn/extensions.xml", ".env", ".github/hooks/x.json", "suite.yaml"},
		ClassInstructions: {"AGENTS.md", "sub/CLAUDE.md", "gemini.md", ".cursorrules", ".github/copilot-instructions.md"},
		ClassOwn:          {".github/workflows/ci.yml", ".venv/bin/python", ".git/objects/aa/bb"},
		"":                {"node_modules/x/AGENTS.md", "node_modules/x/.bazelrc", "env", "docs/mcp.json.md", "main.go"},
	} {
		for _, path := range paths {
			if got, _ := classify(path, TypeFile); got != want {
				t.Errorf("%s: %q, want %q", path, got, want)
			}
		}
	}
}

// In a package.json only changed commands count, in a repository without .git only its config.
func TestDiffFindsWhatExecutes(t *testing.T) {
	t.Parallel()
	const plain, scripts = `{"name":"x","version":"1"}`, `{"scripts":{"postinstall":"true"}}`
	huge := `{"name":"` + strings.Repeat("x", maxManifestBytes) + `"}`
	for name, row := range map[string]struct{ host, layer, want []string }{
		"new without":   {nil, []string{"f package.json " + plain}, []string{"A /w/package.json"}},
		"new with":      {nil, []string{"f package.json " + scripts}, []string{"A /w/package.json (npm executes it)"}},
		"a version":     {[]string{`f package.json {"version":"1","scripts":{"a":"b"}}`}, []string{`f package.json {"version":"2","scripts":{"a":"b"}}`}, []string{"C /w/package.json"}},
		"a script":      {[]string{`f package.json {"scripts":{"a":"b"}}`}, []string{`f package.json {"scripts":{"a":"c"}}`}, []string{"C /w/package.json (npm executes it)"}},
		"escaped":       {[]string{"f package.json {}"}, []string{`f package.json {"\u0073cripts":{"a":"c"}}`}, []string{"C /w/package.json (npm executes it)"}},
		"twice":         {[]string{"f package.json {}"}, []string{`f package.json {"scripts":1,"scripts":{"a":"c"}}`}, []string{"C /w/package.json (npm executes it)"}},
		"no JSON":       {[]string{"f package.json {}"}, []string{"f package.json {,"}, []string{"C /w/package.json (npm executes it)"}},
		"too large":     {[]string{"f package.json {}"}, []string{"f package.json " + huge}, []string{"C /w/package.json (npm executes it)"}},
		"a link":        {[]string{"f package.json {}"}, []string{"l package.json other"}, []string{"C /w/package.json -> other (was a file) (npm executes it)"}},
		"a dependency":  {nil, []string{"d node_modules", "f node_modules/package.json " + scripts}, []string{"A /w/node_modules", "A /w/node_modules/package.json"}},
		"gone":          {[]string{"f package.json " + scripts, "f .envrc x"}, []string{"w package.json", "w .envrc"}, []string{"D /w/.envrc", "D /w/package.json"}},
		"bare":          {[]string{"f HEAD x", "f config x"}, []string{"f config yy"}, []string{"C /w/config (git executes it)"}},
		"config":        {[]string{"f config x"}, []string{"f config yy"}, []string{"C /w/config"}},
		"a mode":        {[]string{"d .git", "d .git/hooks", "f .git/hooks/x x"}, []string{"d .git", "d .git/hooks", "f .git/hooks/x x", "m .git/hooks/x 755"}, []string{"C /w/.git/hooks/x (git executes it)"}},
		"a folder link": {[]string{"d .vscode"}, []string{"l .vscode cfg"}, []string{"C /w/.vscode -> cfg (was a dir) (VS Code executes it)"}},
	} {
		if got := diffOf(t, row.host, row.layer, opaqueAt("")); !slices.Equal(got, row.want) {
			t.Errorf("%s: %q, want %q", name, got, row.want)
		}
	}
}

// clove's own documents are found by their text, in each way to write it, and others are not.
func TestDiffFindsOwnDocuments(t *testing.T) {
	t.Parallel()
	for text, name := range map[string]string{
		"version: 1\nname: web\nnetwork: {mode: public}\n":                                                    "web.yaml",
		"{version: 1, name: web, release: x}":                                                                 "any.yml",
		`{"\u0076ersion": 1, "name": "web"}`:                                                                  "web.json",
		`{"version": 1, "suite": {"name": "code"}}`:                                                           "manifest.json",
		"metadata: {annotations: {run.clove.timeout: 1h}}":                                                    "pod.yaml",
		"\xff\xfev\x00e\x00r\x00s\x00i\x00o\x00n\x00:\x00 \x001\x00\n\x00n\x00a\x00m\x00e\x00:\x00 \x00x\x00": "wide.yaml",
	} {
		want := []string{"A /w/" + name + " (clove executes it)"}
		if got := diffOf(t, nil, []string{"f " + name + " " + text}, opaqueAt("")); !slices.Equal(got, want) {
			t.Errorf("%q: %q", text, got)
		}
	}
	if got := diffOf(t, []string{"f web.yaml x"}, []string{"l web.yaml notes", "f notes version: 1"}, opaqueAt("")); !slices.Equal(got, []string{"A /w/notes", "C /w/web.yaml -> notes (was a file) (clove executes it)"}) {
		t.Errorf("a link: %q", got)
	}
	for text, name := range map[string]string{
		"services: {web: {image: x}}\nversion: '3'\nname: x\n": "compose.yaml",
		`{"name": "x", "version": "1.2.3"}`:                    "manifest.json",
		"version: 1\nname: web\n":                              "notes.txt",
		"// comments\n{\"version\": 2}":                        "tsconfig.json",
		"name: x\nversion: 1\n":                                "node_modules/x.yaml",
	} {
		if got := diffOf(t, []string{"d node_modules"}, []string{"d node_modules", "f " + name + " " + text}, opaqueAt("")); !slices.Equal(got, []string{"A /w/" + name}) {
			t.Errorf("%q: %q", text, got)
		}
	}
}

// A new dot-folder with a program or with commands is unknown as a whole, one that the host has,
// or that holds nothing of the kind, is not.
func TestDiffFindsUnknownFolders(t *testing.T) {
	t.Parallel()
	const because = " (unknown: \"a new folder .new with "
	for name, row := range map[string]struct{ host, layer, want []string }{
		"a program": {nil, []string{"d .new", "d .new/sub", "f .new/a.txt x", "f .new/sub/run x", "m .new/sub/run 755"},
			[]string{"A /w/.new" + because + "an executable file\")", "A /w/.new/a.txt" + because + "an executable file\")",
				"A /w/.new/sub" + because + "an executable file\")", "A /w/.new/sub/run" + because + "an executable file\")"}},
		"commands": {nil, []string{"d .new", `f .new/c.json {"servers":{"a":{"Command":"sh"}}}`},
			[]string{"A /w/.new" + because + "a file that names commands\")", "A /w/.new/c.json" + because + "a file that names commands\")"}},
		"hooks in YAML": {nil, []string{"d .new", "f .new/c.yaml on_start: sh"},
			[]string{"A /w/.new" + because + "a file that names commands\")", "A /w/.new/c.yaml" + because + "a file that names commands\")"}},
		"no JSON": {nil, []string{"d .new", "f .new/c.json // x"},
			[]string{"A /w/.new" + because + "a file that names commands\")", "A /w/.new/c.json" + because + "a file that names commands\")"}},
		"a link in it": {nil, []string{"d .new", "l .new/run ../x"},
			[]string{"A /w/.new" + because + "a link\")", "A /w/.new/run -> ../x" + because + "a link\")"}},
		"a link": {nil, []string{"l .new tools"},
			[]string{"A /w/.new -> tools (unknown: \"a link in the place of a file or folder whose name begins with a dot\")"}},
		"in place of a file": {[]string{"f .new x"}, []string{"d .new", "f .new/run x", "m .new/run 755"},
			[]string{"A /w/.new/run" + because + "an executable file\")", "C /w/.new (was a file)" + because + "an executable file\")"}},
		"listed besides": {nil, []string{"d .new", "f .new/run x", "m .new/run 755", "f .new/AGENTS.md x"},
			[]string{"A /w/.new" + because + "an executable file\")", "A /w/.new/AGENTS.md (instructions for every agent that reads AGENTS.md)", "A /w/.new/run" + because + "an executable file\")"}},
		"a file":       {nil, []string{`f .new.json {"hooks":{}}`, `f .other.json {"rules":{}}`, "f .new.yml script: sh"}, []string{"A /w/.new.json (unknown: \"a new file that names commands, and its name begins with a dot\")", "A /w/.new.yml", "A /w/.other.json"}},
		"data":         {nil, []string{"d .new", `f .new/c.json {"colour":"red","description":"x"}`}, []string{"A /w/.new", "A /w/.new/c.json"}},
		"the host's":   {[]string{"d .new"}, []string{"d .new", "f .new/run x", "m .new/run 755"}, []string{"A /w/.new/run"}},
		"a build's":    {nil, []string{"d .venv", "f .venv/run x", "m .venv/run 755"}, []string{"A /w/.venv", "A /w/.venv/run"}},
		"dependencies": {nil, []string{"d node_modules", "d node_modules/.bin", "l node_modules/.bin/x ../x"}, []string{"A /w/node_modules", "A /w/node_modules/.bin", "A /w/node_modules/.bin/x -> ../x"}},
		"no dot":       {nil, []string{"d new", "f new/run x", "m new/run 755"}, []string{"A /w/new", "A /w/new/run"}},
	} {
		if got := diffOf(t, row.host, row.layer, opaqueAt("")); !slices.Equal(got, row.want) {
			t.Errorf("%s:\n%q\nwant\n%q", name, got, row.want)
		}
	}
}

// An agent cannot have clove parse without an end: files beyond the bound count as findings.
func TestDiffParsesNoMoreThanItsShare(t *testing.T) {
	t.Parallel()
	d := &differ{parsedBytes: maxParsedBytes}
	up := t.TempDir()
	plant(t, up, "f x.yaml version")
	var err error
	if d.upper, err = openBeneath(up, 0, nil); err != nil {
		t.Fatal(err)
	}
	defer d.upper.close()
	if p := (&place{differ: d}); !p.isOwnDocument(TypeFile, "x.yaml") || !p.namesCommands("x.yaml") {
		t.Error("what was not read counts as harmless")
	}
}

var update = flag.Bool("update", false, "write the table into docs/apply.md")

// TestExecutedDocument keeps the table in docs/apply.md equal to the program's.
func TestExecutedDocument(t *testing.T) {
	t.Parallel()
	const path = "../docs/apply.md"
	const begin, end = "<!-- executed: generated by `go test ./rootfs -run ExecutedDocument -update` -->\n", "<!-- end of executed -->\n"
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	before, rest, found := strings.Cut(string(text), begin)
	old, after, closed := strings.Cut(rest, end)
	if !found || !closed {
		t.Fatalf("%s has no place for the table", path)
	}
	drawn := executedTable()
	if *update {
		if err := os.WriteFile(path, []byte(before+begin+drawn+end+after), 0o644); err != nil {
			t.Fatal(err)
		}
	} else if old != drawn {
		t.Errorf("%s shows another table:\n%s\nwant\n%s", path, old, drawn)
	}
}

func executedTable() string {
	var b strings.Builder
	b.WriteString("| class | program | names | where | source | since |\n|---|---|---|---|---|---|\n")
	for _, e := range readConventions() {
		where := "anywhere"
		if e.project {
			where = "project"
		}
		fmt.Fprintf(&b, "| %s | %s | `%s` | %s | %s | %s |\n", e.class, e.program, strings.Join(e.names, "`, `"), where, e.source, e.date)
	}
	return b.String()
}

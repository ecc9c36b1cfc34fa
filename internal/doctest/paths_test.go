package doctest

import (
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var (
	// relative matches a path of at least two names; source matches the name of a source file
	// or document.
	relative = regexp.MustCompile(`^(?:\./)?[A-Za-z0-9_.*-]+(?:/[A-Za-z0-9_.*-]+)+/?$`)
	source   = regexp.MustCompile(`^[A-Za-z0-9_.*-]+\.(?:md|go|sh|py|c)$`)
	link     = regexp.MustCompile(`\]\(([^)#]+)[^)]*\)`)
)

// examples are invented names in documents, those of runs among them; ID stands for a run's.
var examples = []string{"h.c", "./hello", "0/run", "something_root_test.go", "clove.slice/ID", "clove/ID", "lost/ID", "layers/ID.json", "logs/ID/run.json", "server.py", "lead.py", "worker.py", "answer.py", "9464/metrics", "clove.run/node", ".git/config", ".github/workflows", "UID/NAME", "1000/web",
	"UID/ns", "UID/name", "UID/run", "UID/provider", "1000/ns", "1000/name", "1000/run", "10/day", "50k/day", "1M/month", "acme/research", "ask.py", "boss.py", "hear.py", "say.py", "give.py", "greet.py", "keep.py", "topic/news", "job/QUEUE", "job/squares", "job/builds", "job/counts", "square.py", "book.py", "plans/today", "count.py", "hello.py", "spend.py", "a/workspace/notes.txt", "b/workspace/notes.txt",
	"8411/v1", "8413/mcp", "openai/small", "s/2/3/", "digest.py", "digest2.py", "other.py", "8099/sky.json", "./digest.seccomp.json", "src/a.txt", "conftest.py", "tools/tasks.json", ".cache/uv", ".git/*", ".config/gh/hosts.yml", "agent.sh", "notes.md", "443/repos/other.git/info/refs", "api/v3", "api/graphql"}

// network matches a range of addresses, which looks like a path.
var network = regexp.MustCompile(`^[0-9.]+/[0-9]+$`)

// TestNamedPathsExist takes a quoted word with a slash, or a file's name, for a path of the
// tree, unless it is a library of go.mod.
func TestNamedPathsExist(t *testing.T) {
	t.Parallel()
	root := Root(t)
	modules, err := os.ReadFile(filepath.Join(root, "go.mod"))
	if err != nil {
		t.Fatal(err)
	}
	// Names that programs give their files are no paths of this tree.
	conventions, err := os.ReadFile(filepath.Join(root, "rootfs", "executed.csv"))
	if err != nil {
		t.Fatal(err)
	}
	foreign := strings.FieldsFunc(strings.ToLower(string(conventions)), func(r rune) bool { return strings.ContainsRune(" ,\n", r) })
	files := Files(t, root)
	seen := 0
	for _, code := range Quoted(t) {
		for _, word := range strings.FieldsFunc(code.Text, func(r rune) bool { return strings.ContainsRune(" ,;:=()\"'", r) }) {
			if !relative.MatchString(word) && !source.MatchString(word) || network.MatchString(word) || slices.Contains(foreign, strings.ToLower(word)) {
				continue
			}
			seen++
			if !inTree(root, files, code.File, word) && !strings.Contains(string(modules), "/"+word+" ") && !slices.Contains(examples, word) {
				t.Errorf("%s:%d: there is no %s", code.File, code.Line, word)
			}
		}
	}
	if seen == 0 {
		t.Error("no document names a path")
	}
}

// inTree reports whether word is a path from the root or from the document, a package's folder
// without its parent, or, without slashes, any file's name.
func inTree(root string, files []string, document, word string) bool {
	word = strings.TrimPrefix(strings.TrimSuffix(strings.TrimSuffix(word, "/..."), "/"), "./")
	if word == "..." {
		return true // go's word for every package
	}
	// Build results are named in the Makefile and in .gitignore, and need not exist.
	if first, _, _ := strings.Cut(word, "/"); first == "bin" || first == "build" {
		return true
	}
	for _, dir := range []string{root, filepath.Join(root, filepath.Dir(document))} {
		if matches, _ := filepath.Glob(filepath.Join(dir, word)); len(matches) > 0 {
			return true
		}
	}
	return !strings.Contains(word, "/") && slices.ContainsFunc(files, func(file string) bool {
		ok, _ := filepath.Match(word, filepath.Base(file))
		return ok
	})
}

func TestLinksLeadSomewhere(t *testing.T) {
	t.Parallel()
	root := Root(t)
	for _, file := range Files(t, root, ".md") {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		for _, match := range link.FindAllStringSubmatch(string(text), -1) {
			if strings.Contains(match[1], "://") {
				continue
			}
			if _, err := os.Stat(filepath.Join(root, filepath.Dir(file), match[1])); err != nil {
				t.Errorf("%s links to %s: %v", file, match[1], err)
			}
		}
	}
}

var (
	// anchored matches a link to a heading, title one of the headings.
	anchored = regexp.MustCompile(`\]\(([^)#:]*)#([^)]+)\)`)
	title    = regexp.MustCompile(`(?m)^#+ (.+)$`)
	// unnamed are the characters of a heading that its anchor does without.
	unnamed = regexp.MustCompile(`[^\p{L}\p{N}_ -]`)
)

// TestAnchorsExist: a link to a heading of a document names one that is there.
func TestAnchorsExist(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, file := range Files(t, Root(t), ".md") {
		for _, match := range anchored.FindAllStringSubmatch(readTree(t, file), -1) {
			seen++
			document := file
			if match[1] != "" {
				document = filepath.Join(filepath.Dir(file), match[1])
			}
			if !slices.Contains(anchors(readTree(t, document)), match[2]) {
				t.Errorf("%s links to %s, which has no heading %s", file, document, match[2])
			}
		}
	}
	if seen == 0 {
		t.Error("control: no document links to a heading")
	}
}

// anchors returns the names by which a document's headings are linked to.
func anchors(text string) (names []string) {
	for _, match := range title.FindAllStringSubmatch(text, -1) {
		plain := unnamed.ReplaceAllString(strings.ToLower(match[1]), "")
		names = append(names, strings.ReplaceAll(plain, " ", "-"))
	}
	return names
}

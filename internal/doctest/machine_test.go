package doctest

import (
	"bytes"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// standard are the directories of hier(7), and those that exist in a sandbox, in an example, in
// what agents share or in the address of a model, and the words of clove chat.
var standard = []string{"agent", "attempt", "bin", "boot", "cost", "data", "dev", "env", "etc", "home", "lib", "lib*", "logs", "media", "memory", "mnt", "name", "namespace", "notes", "opt", "output", "proc", "quit", "repos", "root", "run",
	"sbin", "secrets", "setup", "solution", "srv", "sys", "task", "tests", "tmp", "tools", "usr", "v1", "var", "workspace"}

var absolute = regexp.MustCompile(`(?:^|[\s"'=:(])/([A-Za-z0-9_.*-]+)`)

// TestDocumentsNameStandardDirectories: every reader has the absolute paths in a document.
func TestDocumentsNameStandardDirectories(t *testing.T) {
	t.Parallel()
	for _, code := range Quoted(t) {
		for _, match := range absolute.FindAllStringSubmatch(code.Text, -1) {
			if !slices.Contains(standard, match[1]) {
				t.Errorf("%s:%d: /%s is no directory of every machine", code.File, code.Line, match[1])
			}
		}
	}
}

// TestNoPathsOfADevelopmentMachine: neither this tree's path, nor its neighbours', nor its
// author's home.
func TestNoPathsOfADevelopmentMachine(t *testing.T) {
	t.Parallel()
	root := Root(t)
	home, _ := os.UserHomeDir() // empty: there is no home
	var beside []string
	entries, _ := os.ReadDir(filepath.Dir(root)) // unreadable: there are no neighbours to look for
	for _, entry := range entries {
		beside = append(beside, entry.Name())
	}
	own := ownPaths(root, home, beside)
	for _, file := range Files(t, root) {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		// The expression is slow where it does not match, because it begins with no literal.
		if (bytes.Contains(text, []byte(filepath.Dir(root))) || bytes.Contains(text, []byte(home))) && own.Match(text) {
			t.Errorf("%s names a path of this machine: %s", file, own.Find(text))
		}
	}
}

// ownPaths matches root, home, and the neighbours of root by name: a test may invent a path
// that begins like this machine's.
func ownPaths(root, home string, beside []string) *regexp.Regexp {
	paths := []string{regexp.QuoteMeta(root)}
	if home != "" && home != "/" && home != "/root" {
		paths = append(paths, regexp.QuoteMeta(home))
	}
	// If the parent is a directory of every machine, its other entries do not count.
	if parent := filepath.Dir(root); parent != "/" && !slices.Contains(standard, strings.TrimPrefix(parent, "/")) {
		for _, name := range beside {
			paths = append(paths, regexp.QuoteMeta(filepath.Join(parent, name)))
		}
	}
	return regexp.MustCompile(`(?:^|[^A-Za-z0-9_.*/-])(?:` + strings.Join(paths, "|") + `)(?:$|[^A-Za-z0-9_-])`)
}

func TestOwnPaths(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		root, home, text string
		found            bool
	}{
		{"/box/tree", "/root", "see /box/notes/a", true},
		{"/box/tree", "/root", "see /box/elsewhere and /box/notes2", false},
		{"/box/tree", "/root", "see /boxes/notes and a/box/notes", false},
		{"/box/tree", "/root", "see /root/.ssh", false},
		{"/tmp/tree", "/root", "see /tmp/notes", false},
		{"/tmp/tree", "/root", "see `/tmp/tree/a`", true},
		{"/home/x/src/tree", "/home/x", "see '/home/x/b'", true},
		{"/tree", "/", "/etc, /tree", true},
		{"/tree", "/", "/notes", false},
	} {
		if found := ownPaths(test.root, test.home, []string{"notes", "tree"}).MatchString(test.text); found != test.found {
			t.Errorf("in %s: %q found: %t", test.root, test.text, found)
		}
	}
}

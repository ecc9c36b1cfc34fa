package doctest

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// Code is one piece of code that a document quotes: what stands between
// backquotes, or one line of a block.
type Code struct {
	File string // below the tree's root
	Line int    // from 1
	Text string
}

// Root returns the tree's root, where go.mod lies.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; ; dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("cannot find go.mod above the test")
		}
	}
}

// made are the folders without source files.
var made = []string{".git", "bin", "build", "testdata", "__pycache__"}

// Files returns the paths, below root, of the tree's files with one of these endings, or of
// all files.
func Files(t *testing.T, root string, endings ...string) []string {
	t.Helper()
	var files []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return nil // a file of another test, removed meanwhile
		case err != nil:
			return err
		case d.IsDir() && slices.Contains(made, d.Name()):
			return fs.SkipDir
		case d.Type().IsRegular() && (len(endings) == 0 || slices.Contains(endings, filepath.Ext(path))):
			relative, err := filepath.Rel(root, path)
			files = append(files, relative)
			return err
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return files
}

// Quoted returns the code in every document of the tree.
func Quoted(t *testing.T) []Code {
	t.Helper()
	root := Root(t)
	var all []Code
	for _, file := range Files(t, root, ".md") {
		text, err := os.ReadFile(filepath.Join(root, file))
		if err != nil {
			t.Fatal(err)
		}
		all = append(all, quotedIn(file, string(text))...)
	}
	if len(all) == 0 {
		t.Fatal("no document quotes any code")
	}
	return all
}

var backquoted = regexp.MustCompile("`([^`]+)`")

// quotedIn parses one document. Code blocks are indented by four or are between fences;
// continuation lines of lists are indented by less.
func quotedIn(file, text string) []Code {
	var all []Code
	fenced := false
	for i, line := range strings.Split(text, "\n") {
		add := func(text string) { all = append(all, Code{file, i + 1, strings.TrimSpace(text)}) }
		switch {
		case strings.HasPrefix(line, "```"):
			fenced = !fenced
		case fenced || strings.HasPrefix(line, "    ") && strings.TrimSpace(line) != "":
			add(line)
		default:
			for _, match := range backquoted.FindAllStringSubmatch(line, -1) {
				add(match[1])
			}
		}
	}
	return all
}

// Rows returns the cells of every row of the tables in a document.
func Rows(t *testing.T, file string) [][]string {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(Root(t), file))
	if err != nil {
		t.Fatal(err)
	}
	var rows [][]string
	for line := range strings.Lines(string(text)) {
		line, inside := strings.CutPrefix(strings.TrimSpace(line), "| ")
		if !inside {
			continue
		}
		cells := strings.Split(strings.TrimSuffix(line, " |"), " | ")
		for i := range cells {
			cells[i] = strings.TrimSpace(cells[i])
		}
		rows = append(rows, cells)
	}
	return rows
}

package main

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
)

// outputs are the generated files, by their paths below the tree's root. Each has a template of its
// name. Of a document, only the part between the marks is generated.
var outputs = []string{
	"sdk/python/clove/api.py",
	"sdk/python/clove/cloved_api.py",
	"sdk/typescript/api.js",
	"sdk/typescript/api.d.ts",
	"docs/api.md",
}

// begin and end are the marks in a document.
const begin, end = "<!-- generated: methods -->\n", "<!-- end -->\n"

func main() {
	if err := write(); err != nil {
		fmt.Fprintf(os.Stderr, "generate: %v\n", err)
		os.Exit(1)
	}
}

// write writes the files that are not current.
func write() error {
	files, err := generated()
	for path, text := range files {
		if err == nil {
			err = os.WriteFile(path, text, 0o644)
			fmt.Println("wrote", filepath.Base(path))
		}
	}
	return err
}

// generated returns the texts of the files that are not current, by their paths.
func generated() (map[string][]byte, error) {
	root, err := treeRoot()
	if err != nil {
		return nil, err
	}
	t, err := newTable(root)
	if err != nil {
		return nil, err
	}
	changed := map[string][]byte{}
	for _, name := range outputs {
		path := filepath.Join(root, name)
		old, err := os.ReadFile(path)
		if err != nil && !errors.Is(err, os.ErrNotExist) {
			return nil, err
		}
		text, err := t.draw(filepath.Base(name))
		if err == nil && filepath.Ext(name) == ".md" {
			text, err = between(string(old), text)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if string(old) != text {
			changed[path] = []byte(text)
		}
	}
	return changed, nil
}

// between returns a document with another text between its marks.
func between(document, text string) (string, error) {
	before, rest, begun := strings.Cut(document, begin)
	_, after, ended := strings.Cut(rest, end)
	if !begun || !ended {
		return "", errors.New("it has no marks for the generated part")
	}
	return before + begin + text + end + after, nil
}

// treeRoot is the directory with go.mod, at or above the current one.
func treeRoot() (string, error) {
	dir, err := os.Getwd()
	for err == nil {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		if dir == filepath.Dir(dir) {
			return "", errors.New("there is no go.mod at or above the current directory")
		}
		dir = filepath.Dir(dir)
	}
	return "", err
}

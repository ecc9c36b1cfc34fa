package main

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"slices"
)

// part is a module or package that is linked.
type part struct {
	name, version string
	texts         []text
}

// text is one file with a licence or a notice.
type text struct {
	name    string // below the part's folder
	content []byte
}

func (p *part) compare(other *part) int { return cmp.Compare(p.name, other.name) }

// check refuses a part without a licence: nothing allows linking it.
func (p *part) check() error {
	if slices.ContainsFunc(p.texts, func(t text) bool { return licences.MatchString(filepath.Base(t.name)) }) {
		return nil
	}
	return fmt.Errorf("%s %s has no licence", p.name, p.version)
}

// rights are the names of files with the terms for the files beside them.
var (
	rights   = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright|notice|patents)([.-].*)?$`)
	licences = regexp.MustCompile(`(?i)^(licen[cs]e|copying|copyright)`)
)

// addFolder adds the texts that are directly in a folder below root. A Go file may be
// called license.go and is code.
func (p *part) addFolder(root, folder string) error {
	entries, err := os.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, entry := range entries {
		if !entry.Type().IsRegular() || !rights.MatchString(entry.Name()) || filepath.Ext(entry.Name()) == ".go" {
			continue
		}
		if err := p.addFile(root, filepath.Join(folder, entry.Name())); err != nil {
			return err
		}
	}
	return nil
}

func (p *part) addFile(root, path string) error {
	name, err := filepath.Rel(root, path)
	if err != nil || slices.ContainsFunc(p.texts, func(t text) bool { return t.name == name }) {
		return err
	}
	content, err := os.ReadFile(path)
	p.texts = append(p.texts, text{name, content})
	return err
}

// heading begins a part; tests look for it.
const heading = "==== %s %s\n"

// write prints the parts, and each text with the first that has it.
func write(to io.Writer, all []*part) {
	fmt.Fprint(to, "Clove's programs are linked with the following. Each comes with its licence, or with\nthe name of the part above whose text is the same.\n\n")
	first := map[string]string{}
	for _, p := range all {
		fmt.Fprintf(to, heading+"\n", p.name, p.version)
		for _, t := range p.texts {
			content := string(bytes.TrimSpace(t.content))
			if shown, known := first[content]; known {
				fmt.Fprintf(to, "%s: the same text as %s\n\n", t.name, shown)
				continue
			}
			first[content] = p.name + " " + t.name
			fmt.Fprintf(to, "%s:\n\n%s\n\n", t.name, content)
		}
	}
}

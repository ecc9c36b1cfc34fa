package doctest

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// parts are the sections of the table of folders. A folder belongs to the section that names
// it or the nearest folder above it.
var parts = []struct {
	title   string
	folders []string
}{
	{"The core", []string{"agent", "policies", "scheduler", "runtime", "store", "audit"}},
	{"One kernel feature each", []string{"cgroups", "netns", "landlock", "rootfs", "seccomp"}},
	{"The network", []string{"egress"}},
	{"Services that agents share", []string{"kernel"}},
	{"Secrets", []string{"secrets"}},
	{"Models", []string{"models"}},
	{"Tools", []string{"tools"}},
	{"clove's own agent", []string{"loop"}},
	{"The daemon and its clients", []string{"api", "daemon", "client", "sdk"}},
	{"Benchmarks of agents", []string{"bench"}},
	{"Engines and clusters", []string{"oci", "deploy"}},
	{"The programs", []string{"cmd"}},
	{"Small shared packages", []string{"internal"}},
	{"Tests", []string{"integration", "internal/archtest", "internal/doctest", "internal/kubetest", "internal/linear", "internal/ocitest", "internal/testhost"}},
}

// longestDuty bounds a row of the table, in bytes.
const longestDuty = 200

// TestFoldersAreDocumented: docs/folders.md has a row for each folder with Go files, with the
// first sentence of its package comment.
func TestFoldersAreDocumented(t *testing.T) {
	rows := map[string]string{} // by title
	for _, folder := range goFolders(t) {
		title := partOf(folder)
		if title == "" {
			t.Errorf("no part of the table has %s", folder)
		}
		duty := dutyOf(t, folder)
		if duty == "" || len(duty) > longestDuty {
			t.Errorf("the package comment of %s has no first sentence of at most %d bytes: %q", folder, longestDuty, duty)
		}
		rows[title] += fmt.Sprintf("| `%s` | %s |\n", folder, duty)
	}
	var table strings.Builder
	for _, part := range parts {
		fmt.Fprintf(&table, "\n%s:\n\n| folder | duty |\n|---|---|\n%s", part.title, rows[part.title])
	}
	holdTo(t, "docs/folders.md", "folders", table.String()+"\n")
}

// goFolders returns the folders with Go files, in order.
func goFolders(t *testing.T) (folders []string) {
	t.Helper()
	for _, file := range Files(t, Root(t), ".go") {
		folders = append(folders, path.Dir(file))
	}
	slices.Sort(folders)
	return slices.Compact(folders)
}

// partOf returns the title of a folder's section; empty: it has none.
func partOf(folder string) string {
	for ; folder != "."; folder = path.Dir(folder) {
		for _, part := range parts {
			if slices.Contains(part.folders, folder) {
				return part.title
			}
		}
	}
	return ""
}

// opening matches the words of a package comment that a row of a table does without.
var opening = regexp.MustCompile(`^(?:Package|Command) \S+ (?:is )?`)

// dutyOf returns the first sentence of a package comment, without its opening and its end.
func dutyOf(t *testing.T, folder string) string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(Root(t), folder, "*.go"))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			t.Fatal(err)
		}
		if duty := sentence(parsed); duty != "" {
			return duty
		}
	}
	return ""
}

func sentence(file *ast.File) string {
	first := new(doc.Package).Synopsis(file.Doc.Text())
	return strings.TrimSuffix(opening.ReplaceAllString(first, ""), ".")
}

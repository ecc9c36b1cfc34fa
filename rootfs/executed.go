package rootfs

import (
	_ "embed" // the list below
	"encoding/csv"
	"path"
	"slices"
	"strings"
	"sync"
)

// Class says why a change needs consent of its own before it is written to the host.
type Class string

// The classes. ClassOwn is of no change: it marks folders that hold programs because a build or
// another tool puts them there, so that they are not unknown.
const (
	ClassExecutable   Class = "executable"   // a program of the host's executes it without being asked
	ClassInstructions Class = "instructions" // the next agent in the folder follows it
	ClassUnknown      Class = "unknown"      // a new dot-folder of no known program, with programs or commands
	ClassOwn          Class = "own"
)

// executedText is the list of names: one entry a line, each with the document that says so and
// the day on which it was added. docs/apply.md shows it.
//
//go:embed executed.csv
var executedText string

// convention is one line of the list. A name is a file's, or with a final slash a folder's, and then
// everything in it counts. A name may have the last folders before it (.mvn/extensions.xml), and
// a file's last part may be a pattern of path.Match.
type convention struct {
	class   Class
	program string
	project bool // not below node_modules: no such folder is opened as a project
	names   []string
	source  string
	date    string
}

// readConventions parses the list. The order of classes in it is that of their weight: the first
// match decides.
func readConventions() []convention {
	rows, err := csv.NewReader(strings.NewReader(executedText)).ReadAll()
	if err != nil {
		panic("executed.csv: " + err.Error()) // it is part of the program, and a test reads it
	}
	conventions := make([]convention, 0, len(rows)-1)
	for _, row := range rows[1:] {
		conventions = append(conventions, convention{class: Class(row[0]), program: row[1], project: row[2] == "project",
			names: strings.Fields(strings.ToLower(row[3])), source: row[4], date: row[5]})
	}
	return conventions
}

// name is one name of a convention, in the form in which it is compared.
type name struct {
	elements   []string
	folder     bool
	convention *convention
	rank       int // of the convention
}

// namesByLast has the names by their last element, those with a pattern there under "".
var namesByLast = sync.OnceValue(func() map[string][]name {
	index := map[string][]name{}
	conventions := readConventions()
	for rank := range conventions {
		for _, text := range conventions[rank].names {
			n := name{elements: strings.Split(strings.TrimSuffix(text, "/"), "/"), folder: strings.HasSuffix(text, "/"), convention: &conventions[rank], rank: rank}
			last := n.elements[len(n.elements)-1]
			if strings.ContainsAny(last, "*?[") {
				last = ""
			}
			index[last] = append(index[last], n)
		}
	}
	return index
})

// listed returns the first convention that has the path, or nil. A file with a folder's
// name counts as the folder: a symbolic link of that name could lead to any folder.
func listed(elements []string) *convention {
	var found *name
	index := namesByLast()
	look := func(candidates []name, end int) {
		for i, n := range candidates {
			if (found == nil || n.rank < found.rank) && n.matches(elements, end) {
				found = &candidates[i]
			}
		}
	}
	for i, element := range elements {
		look(index[element], i+1)
	}
	look(index[""], len(elements))
	if found == nil {
		return nil
	}
	return found.convention
}

// matches reports whether the name stands in the path and ends before the element end.
func (n name) matches(elements []string, end int) bool {
	begin := end - len(n.elements)
	if begin < 0 || !n.folder && end != len(elements) || n.convention.project && slices.Contains(elements, "node_modules") {
		return false
	}
	for i, want := range n.elements {
		if ok, _ := path.Match(want, elements[begin+i]); !ok { // a test finds what is no pattern
			return false
		}
	}
	return true
}

// elementsOf splits a path for the comparison with names. Case does not count, because some file
// systems do not distinguish .GIT from .git. To upper case first: some letters meet an ASCII
// letter only there, as ſ meets s in S.
func elementsOf(rel string) []string {
	return strings.Split(strings.ToLower(strings.ToUpper(rel)), "/")
}

// classify returns the class of the file rel by its name, and the program that executes or
// follows it. kind is the file's type.
func classify(rel string, kind FileType) (Class, string) {
	if kind == TypeDir {
		return "", "" // its conventions are judged one by one
	}
	elements := elementsOf(rel)
	if i := slices.Index(elements, ".git"); i >= 0 && i < len(elements)-1 {
		if executedByGit(elements[i+1:], kind) {
			return ClassExecutable, "git"
		}
		return ClassOwn, "git"
	}
	if e := listed(elements); e != nil {
		return e.class, e.program
	}
	return "", ""
}

// gitFiles are the files of a .git folder, and of the folders of its submodules and work
// trees, that say what git executes or where to read that (gitrepository-layout(5)). The
// lists of a rebase contain commands.
var gitFiles = []string{"config", "config.worktree", "commondir", "gitdir", "hooks", "rebase-merge", "rebase-apply", "sequencer"}

// executedByGit judges files in a .git folder. Objects, branches and logs are only data, but for
// the file that names other folders with objects.
func executedByGit(elements []string, kind FileType) bool {
	return kind == TypeSymlink || strings.HasSuffix(strings.Join(elements, "/"), "objects/info/alternates") ||
		!slices.Contains([]string{"objects", "refs", "logs"}, elements[0]) && slices.ContainsFunc(elements, func(element string) bool { return slices.Contains(gitFiles, element) })
}

// isGitConfig: these files say what git executes if a file HEAD makes their folder a
// repository without .git (a bare one).
func isGitConfig(rel string) bool {
	name := strings.ToLower(path.Base(rel))
	return slices.Contains([]string{"config", "config.worktree", "commondir"}, name)
}

package rootfs

import (
	"path"
	"slices"
	"strings"
)

// executor is a program that executes certain files without being asked, as soon as a user
// works with the folder that contains them.
type executor struct {
	program string
	files   []string // names, in lower case
	folders []string // names, in lower case; everything in them counts
}

// enterers execute files of the current folder, wherever it is.
var enterers = []executor{
	{"git", []string{".git", "head", ".gitconfig",
		// githooks(5): core.hooksPath may name any folder.
		"applypatch-msg", "pre-applypatch", "post-applypatch", "pre-commit", "pre-merge-commit", "prepare-commit-msg", "commit-msg", "post-commit",
		"pre-rebase", "post-checkout", "post-merge", "pre-push", "pre-receive", "proc-receive", "post-receive", "post-update",
		"reference-transaction", "push-to-checkout", "pre-auto-gc", "post-rewrite", "sendemail-validate", "fsmonitor-watchman", "post-index-change"},
		[]string{".githooks", ".husky"}},
	{"direnv", []string{".envrc"}, nil},
	{"mise", []string{"mise.toml", ".mise.toml", "mise.local.toml", ".mise.local.toml"}, []string{"mise", ".mise"}},
	{"nix", []string{"flake.nix", "shell.nix", "devenv.nix"}, nil},
	{"a shell", []string{".profile", ".bashrc", ".bash_profile", ".bash_login", ".bash_logout", ".zshenv", ".zshrc", ".zprofile", ".zlogin", ".rvmrc", ".autoenv", ".autoenv.zsh"}, nil},
	{"ssh", nil, []string{".ssh"}},
	{"gdb", []string{".gdbinit", ".lldbinit"}, nil},
	{"vim", []string{".exrc", ".vimrc", ".nvimrc", ".nvim.lua", ".lvimrc"}, nil},
	{"clove", []string{"pyvenv.cfg"}, nil}, // a .venv names the interpreter that clove shows the agent
	{"emacs", []string{".dir-locals.el", ".dir-locals-2.el"}, nil},
}

// openers execute files of a folder that a user opens as a project. Nobody opens a folder
// below node_modules as one.
var openers = []executor{
	{"VS Code", []string{".devcontainer.json"}, []string{".vscode", ".devcontainer"}},
	{"JetBrains", nil, []string{".idea", ".run"}},
	{"Zed", nil, []string{".zed"}},
	{"Cursor", nil, []string{".cursor"}},
	{"Claude Code", []string{".mcp.json"}, []string{".claude"}},
	{"Gemini CLI", nil, []string{".gemini"}},
	{"Codex", nil, []string{".codex"}},
	{"pre-commit", []string{".pre-commit-config.yaml", "lefthook.yml", "lefthook.yaml", ".lefthook.yml", ".lefthook.yaml", ".overcommit.yml",
		".huskyrc", ".huskyrc.json", ".huskyrc.js", ".lintstagedrc", ".lintstagedrc.json", ".lintstagedrc.js"}, nil},
	{"npm", []string{".npmrc", ".pnpmfile.cjs"}, nil},
	{"yarn", []string{".yarnrc", ".yarnrc.yml"}, []string{".yarn"}},
	{"cargo", []string{"rust-toolchain", "rust-toolchain.toml"}, []string{".cargo"}},
}

// executedBy names the host program that executes the file rel without being asked to run
// the project, or returns "". kind is the file's type. Names are compared without case,
// because some file systems do not distinguish .GIT from .git.
func executedBy(rel string, kind FileType) string {
	if kind == TypeDir {
		return "" // its entries are judged one by one
	}
	// To upper case first: some letters meet an ASCII letter only there, as ſ meets s in S.
	elements := strings.Split(strings.ToLower(strings.ToUpper(rel)), "/")
	if i := slices.Index(elements, ".git"); i >= 0 && i < len(elements)-1 {
		return executedByGit(elements[i+1:], kind)
	}
	tables := [][]executor{enterers, openers}
	if slices.Contains(elements, "node_modules") {
		tables = tables[:1]
	}
	for _, e := range slices.Concat(tables...) {
		if e.reads(elements) {
			return e.program
		}
	}
	return ""
}

// reads treats a file with a folder's name like the folder: a symbolic link of that name
// could lead to any folder.
func (e executor) reads(elements []string) bool {
	return slices.Contains(e.files, elements[len(elements)-1]) ||
		slices.ContainsFunc(elements, func(element string) bool { return slices.Contains(e.folders, element) })
}

// gitFiles are the files of a .git folder, and of the folders of its submodules and work
// trees, that say what git executes or where to read that (gitrepository-layout(5)). The
// lists of a rebase contain commands.
var gitFiles = []string{"config", "config.worktree", "commondir", "gitdir", "hooks", "rebase-merge", "rebase-apply", "sequencer"}

// executedByGit judges files in a .git folder. Objects, branches and logs are only data.
func executedByGit(elements []string, kind FileType) string {
	switch {
	case kind == TypeSymlink,
		!slices.Contains([]string{"objects", "refs", "logs"}, elements[0]) && slices.ContainsFunc(elements, func(element string) bool { return slices.Contains(gitFiles, element) }):
		return "git"
	}
	return ""
}

// isGitConfig: these files say what git executes if a file HEAD makes their folder a
// repository without .git (a bare one).
func isGitConfig(rel string) bool {
	name := strings.ToLower(path.Base(rel))
	return slices.Contains([]string{"config", "config.worktree", "commondir"}, name)
}

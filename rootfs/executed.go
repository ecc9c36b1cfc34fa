package rootfs

import (
	"path"
	"slices"
	"strings"
)

// executor is a program that executes what it finds in certain files as soon as somebody works
// with the folder that holds them.
type executor struct {
	program string
	files   []string // names, in small letters
	folders []string // names, in small letters; all that is in them counts
}

// enterers read the folder that somebody stands in, wherever it is.
var enterers = []executor{
	{"git", []string{".git", "head", ".gitconfig",
		// githooks(5): core.hooksPath may lead to any folder.
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
	{"clove", []string{"pyvenv.cfg"}, nil}, // shows the agent the interpreter that a .venv names
	{"emacs", []string{".dir-locals.el", ".dir-locals-2.el"}, nil},
}

// openers read the folder that is opened as a project; what lies below node_modules is a
// part of one, which nobody opens.
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

// executedBy names the program of the host's that executes what the file rel says without being
// asked to run the project, or returns "". kind is what stands there. Letters are folded, because
// some file systems do not tell .GIT from .git.
func executedBy(rel string, kind FileType) string {
	if kind == TypeDir {
		return "" // what is in it is judged by itself
	}
	steps := strings.Split(strings.ToLower(strings.ToUpper(rel)), "/")
	if i := slices.Index(steps, ".git"); i >= 0 && i < len(steps)-1 {
		return executedByGit(steps[i+1:], kind)
	}
	tables := [][]executor{enterers, openers}
	if slices.Contains(steps, "node_modules") {
		tables = tables[:1]
	}
	for _, e := range slices.Concat(tables...) {
		if e.reads(steps) {
			return e.program
		}
	}
	return ""
}

// reads: a name that should be a folder's counts too. A link could lead it anywhere.
func (e executor) reads(steps []string) bool {
	return slices.Contains(e.files, steps[len(steps)-1]) ||
		slices.ContainsFunc(steps, func(step string) bool { return slices.Contains(e.folders, step) })
}

// gitFiles are those of a .git folder, and of the folders of its submodules and work trees, that
// say what git executes, or where to read that: gitrepository-layout(5). The lists of a rebase
// hold commands.
var gitFiles = []string{"config", "config.worktree", "commondir", "gitdir", "hooks", "rebase-merge", "rebase-apply", "sequencer"}

// executedByGit judges what lies in a .git folder. Objects, branches and logs are data.
func executedByGit(steps []string, kind FileType) string {
	switch {
	case kind == TypeSymlink,
		!slices.Contains([]string{"objects", "refs", "logs"}, steps[0]) && slices.ContainsFunc(steps, func(step string) bool { return slices.Contains(gitFiles, step) }):
		return "git"
	}
	return ""
}

// isGitConfig: these say what git executes where a file HEAD makes their folder a repository without .git.
func isGitConfig(rel string) bool {
	name := strings.ToLower(path.Base(rel))
	return slices.Contains([]string{"config", "config.worktree", "commondir"}, name)
}

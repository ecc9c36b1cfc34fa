package builtin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"clove.run/clove/internal/gitdir"
	"clove.run/clove/tools"
)

// gitTime bounds a call unless it says otherwise.
const gitTime = 30 * time.Second

// GitArguments are those of git.
type GitArguments struct {
	Op      string   `json:"op"`
	Repo    string   `json:"repo"`
	Ref     string   `json:"ref"`
	Path    string   `json:"path"`
	Args    []string `json:"args"`
	Timeout int      `json:"timeout_s"` // 0: 30
}

// operation is a subcommand of git's that only reads.
type operation struct {
	command []string // with what it always gets
	options []string // that a call may have; one with = or * at its end takes a plain value, one with # a number
	ref     bool     // it takes one
	path    bool
}

// safe keeps programs of attributes away, which no setting could name either.
var safe = []string{"--no-ext-diff", "--no-textconv", "--no-color"}

var differences = []string{"--stat", "--shortstat", "--numstat", "--name-only", "--name-status", "--summary", "--patch", "-p", "--no-patch", "-s", "-U#", "--unified=#", "-w", "-b",
	"--ignore-all-space", "--ignore-blank-lines", "--word-diff", "--minimal", "--histogram", "--patience", "-M", "-C", "--find-renames", "--function-context", "-W", "--diff-filter=", "-R", "--raw", "--full-index", "--binary", "-S*", "-G*"}

var history = []string{"-n#", "--max-count=#", "--skip=#", "-#", "--oneline", "--graph", "--all", "--branches", "--tags", "--decorate", "--reverse", "--first-parent", "--merges", "--no-merges", "--follow",
	"--since=", "--until=", "--after=", "--before=", "--author=", "--committer=", "--grep=", "-i", "--abbrev-commit", "--date=", "--topo-order", "--date-order", "--full-history", "--no-decorate", "-L*"}

// formats are those of commits. Others could have %G, which has git run gpg.
var formats = []string{"--format=oneline", "--format=short", "--format=medium", "--format=full", "--format=fuller", "--format=reference", "--format=raw"}

var operations = map[string]operation{
	"status":    {[]string{"status", "--ignore-submodules=all"}, []string{"--short", "-s", "--branch", "-b", "--porcelain", "--porcelain=v2", "--long", "--ignored", "--untracked-files=", "-z", "--no-renames"}, false, true},
	"log":       {slices.Concat([]string{"log", "--no-show-signature", "--ignore-submodules=all"}, safe), slices.Concat(history, differences, formats), true, true},
	"diff":      {slices.Concat([]string{"diff", "--ignore-submodules=all"}, safe), slices.Concat(differences, []string{"--cached", "--staged", "--merge-base"}), true, true},
	"show":      {slices.Concat([]string{"show", "--no-show-signature", "--ignore-submodules=all"}, safe), slices.Concat(differences, formats, []string{"--oneline", "--abbrev-commit", "--date="}), true, true},
	"branch":    {[]string{"branch", "--list", "--no-color", "--no-column"}, []string{"-a", "--all", "-r", "--remotes", "-v", "-vv", "--verbose", "--contains=", "--merged=", "--no-merged=", "--show-current", "--sort="}, false, false},
	"blame":     {[]string{"blame", "--no-textconv"}, []string{"-L*", "-w", "-M", "-C", "-l", "-s", "-e", "--show-email", "--porcelain", "--date=", "--since="}, true, true},
	"ls_files":  {[]string{"ls-files"}, []string{"--cached", "-c", "--others", "-o", "--modified", "-m", "--deleted", "-d", "--stage", "-s", "--exclude-standard", "--ignored", "-i", "--unmerged", "-u", "-z", "--eol"}, false, true},
	"rev_parse": {[]string{"rev-parse"}, []string{"--verify", "--short", "--short=#", "--abbrev-ref", "--symbolic-full-name", "--show-prefix", "--is-bare-repository", "--all", "--branches", "--tags", "--quiet"}, true, false},
}

// plain reports whether a value of an option has nothing that git's formats give a meaning.
func plain(value string) bool {
	return value != "" && len(value) <= 200 && !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r == 0x7f || r == '%' })
}

func isNumber(text string) bool {
	return text != "" && len(text) < 10 && strings.Trim(text, "0123456789") == ""
}

// allowed reports whether an operation may have an option.
func (o operation) allowed(option string) bool {
	return slices.ContainsFunc(o.options, func(known string) bool {
		name, counted := strings.CutSuffix(known, "#")
		if value, is := strings.CutPrefix(option, name); counted && is {
			return isNumber(value)
		}
		name, attached := strings.CutSuffix(known, "*")
		if !attached && !strings.HasSuffix(known, "=") {
			return option == known
		}
		value, is := strings.CutPrefix(option, name)
		return is && plain(value)
	})
}

// line is the command line of a call.
func (a GitArguments) line() ([]string, error) {
	o, known := operations[a.Op]
	if !known {
		return nil, invalid("there is no op %.64q", a.Op)
	}
	line := slices.Clone(o.command)
	for _, option := range a.Args {
		if !o.allowed(option) {
			return nil, invalid("args: %.100q is not allowed for %s; allowed are %s, where # stands for a number, * for a value, and a value follows =", option, a.Op, strings.Join(o.options, " "))
		}
		line = append(line, option)
	}
	switch {
	case a.Ref != "" && !o.ref:
		return nil, invalid("%s takes no ref", a.Op)
	case a.Ref != "" && (a.Ref[0] == '-' || strings.ContainsFunc(a.Ref, func(r rune) bool { return r < ' ' || r == 0x7f })):
		return nil, invalid("ref: it must not begin with -, nor have control characters")
	case a.Path != "" && !o.path:
		return nil, invalid("%s takes no path", a.Op)
	case strings.ContainsRune(a.Path, 0):
		return nil, invalid("path has a NUL byte")
	case a.Op == "blame" && a.Path == "":
		return nil, invalid("blame needs a path")
	}
	if a.Ref != "" {
		line = append(line, a.Ref)
	}
	if o.path {
		line = append(line, "--")
	}
	if a.Path != "" {
		line = append(line, a.Path)
	}
	return line, nil
}

// Git looks into a repository.
func (b *Box) Git(ctx context.Context, a GitArguments) (string, error) {
	line, err := a.line()
	if err != nil {
		return "", err
	}
	dir, err := b.dir(a.Repo)
	if err != nil {
		return "", err
	}
	r, err := findRepository(dir)
	if err != nil {
		return "", err
	}
	shadow, err := r.shadow()
	if err != nil {
		return "", fmt.Errorf("cannot make a git directory without settings: %w", err)
	}
	defer os.RemoveAll(shadow)
	limit := gitTime
	if a.Timeout > 0 {
		limit = min(time.Duration(min(a.Timeout, math.MaxInt32))*time.Second, tools.MaxLookTime)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	out, complaint := &head{most: b.Most}, &Ends{Most: 4 << 10}
	c := exec.Command("git")
	if c.Err != nil {
		return "", fmt.Errorf("cannot run git: %w", c.Err)
	}
	for _, s := range gitdir.Disarm {
		c.Args = append(c.Args, "-c", s)
	}
	c.Args = append(append(c.Args, "--no-pager"), line...)
	c.Dir, c.Env, c.Stdout, c.Stderr = dir, r.environment(shadow), out, complaint
	err = run(timed, c)
	text := strings.ToValidUTF8(string(out.text), "\uFFFD")
	if out.left > 0 {
		text += fmt.Sprintf("\n[%d bytes left out: choose a path or another range]", out.left)
	}
	var ended *exec.ExitError
	switch {
	case ctx.Err() != nil:
		return text, ctx.Err()
	case timed.Err() != nil:
		return text, fmt.Errorf("git took more than %s", limit)
	case errors.As(err, &ended):
		return text, fmt.Errorf("%s\n[git %s: %s]", strings.TrimSpace(complaint.Text()), a.Op, ended)
	case err != nil:
		return text, err
	case text == "":
		return "[nothing]", nil
	}
	return text, nil
}

// repository is where a repository is on disk.
type repository struct {
	work   string // the top of the working tree; empty: bare
	own    string // HEAD and the index
	common string // objects, refs and the configuration
}

// findRepository looks in a folder and in those above.
func findRepository(dir string) (repository, error) {
	dir, err := filepath.EvalSymlinks(dir)
	if err != nil {
		return repository{}, err
	}
	for at := dir; ; at = filepath.Dir(at) {
		own := filepath.Join(at, ".git")
		if target, is := strings.CutPrefix(line(own), "gitdir: "); is {
			own = from(at, target)
		}
		if r := (repository{at, own, common(own)}); isRepository(r) {
			return r, nil
		}
		if r := (repository{"", at, common(at)}); isRepository(r) {
			return r, nil
		}
		if at == filepath.Dir(at) {
			return repository{}, fmt.Errorf("%s is in no git repository: give repo", dir)
		}
	}
}

// common is the repository of a worktree, or the git directory itself.
func common(own string) string {
	if back := line(filepath.Join(own, "commondir")); back != "" {
		return from(own, back)
	}
	return own
}

func isRepository(r repository) bool {
	is := func(path string, want os.FileMode) bool {
		info, err := os.Stat(path)
		return err == nil && info.Mode().Type() == want
	}
	return is(filepath.Join(r.own, "HEAD"), 0) && is(filepath.Join(r.common, "objects"), os.ModeDir) && is(filepath.Join(r.common, "refs"), os.ModeDir)
}

// line is the one line of a file; empty: there is none.
func line(path string) string {
	text, err := small(path)
	if err != nil || strings.ContainsAny(strings.TrimRight(text, "\r\n"), "\x00\n") {
		return ""
	}
	return strings.TrimRight(text, "\r\n")
}

// small reads a file of settings.
func small(path string) (string, error) {
	file, err := openRegular(path, os.O_RDONLY)
	if err != nil {
		return "", err
	}
	defer file.Close()
	text, err := io.ReadAll(io.LimitReader(file, 1<<20))
	return string(text), err
}

// from is a path that is relative to a folder, or absolute.
func from(dir, path string) string {
	if filepath.IsAbs(path) {
		return filepath.Clean(path)
	}
	return filepath.Join(dir, path)
}

// What a git directory has as links: no settings, attributes or hooks.
var (
	commonNames = []string{"objects", "refs", "packed-refs", "shallow", "info/exclude"}
	ownNames    = []string{"index", "logs", "info/sparse-checkout", "MERGE_HEAD", "ORIG_HEAD", "FETCH_HEAD", "CHERRY_PICK_HEAD", "REVERT_HEAD", "rebase-merge", "rebase-apply"}
)

// shadow makes a git directory that leads to the repository's objects, and has of its settings
// those that name no program. The caller removes it.
func (r repository) shadow() (string, error) {
	dir, err := os.MkdirTemp("", "clove-git-")
	if err != nil {
		return "", err
	}
	head, headErr := small(filepath.Join(r.own, "HEAD"))
	config, _ := small(filepath.Join(r.common, "config")) // without one, git has defaults
	err = errors.Join(headErr, os.Mkdir(filepath.Join(dir, "info"), 0o700),
		os.WriteFile(filepath.Join(dir, "HEAD"), []byte(head), 0o600), os.WriteFile(filepath.Join(dir, "config"), []byte(gitdir.Shown(config)), 0o600))
	link := func(from string, names []string) {
		for _, name := range names {
			if _, missing := os.Lstat(filepath.Join(from, name)); missing == nil {
				err = errors.Join(err, os.Symlink(filepath.Join(from, name), filepath.Join(dir, name)))
			}
		}
	}
	link(r.common, commonNames)
	link(r.own, ownNames)
	if err != nil {
		os.RemoveAll(dir)
		return "", err
	}
	return dir, nil
}

// environment has nothing of the caller's but PATH.
func (r repository) environment(shadow string) []string {
	env := append(slices.Clone(gitdir.Environment), "PATH="+os.Getenv("PATH"), "HOME="+shadow, "GIT_DIR="+shadow, "GIT_ATTR_NOSYSTEM=1", "GIT_OPTIONAL_LOCKS=0", "GIT_LITERAL_PATHSPECS=1",
		"GIT_TERMINAL_PROMPT=0", "GIT_ALLOW_PROTOCOL=", "GIT_EDITOR=false", "GIT_ASKPASS=false", "GIT_SSH_COMMAND=false")
	if r.work != "" {
		env = append(env, "GIT_WORK_TREE="+r.work)
	}
	return env
}

package harbor

import (
	"encoding/json"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// image is what a Dockerfile says, and the script that does it.
type image struct {
	from      string
	platform  string
	workdir   string
	user      string
	variables map[string]string // ENV
	arguments map[string]string // ARG
	notes     []string
	script    strings.Builder
	context   string // folder environment of the task
	staged    bool
}

// contextDir is where the set-up finds the folder environment.
const contextDir = "/setup/context"

// standardPath is what a Dockerfile may extend.
const standardPath = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// scriptHead ends the set-up at the first step that fails.
const scriptHead = `# Made of environment/Dockerfile by clove bench import harbor.
step() {
	line=$1
	shift
	"$@" || { echo "Dockerfile line $line: exit status $?" >&2; exit 1; }
}
mkdir -p /logs/agent /logs/artifacts /logs/verifier
`

// translate reads a Dockerfile.
func translate(text, context string) (*image, error) {
	all, err := instructions(text)
	if err != nil {
		return nil, err
	}
	m := &image{workdir: "/", user: "root", variables: map[string]string{}, arguments: map[string]string{}, context: context}
	m.script.WriteString(scriptHead)
	steps := map[string]func(instruction) error{"FROM": m.stage, "RUN": m.run, "COPY": m.copy, "ADD": m.copy, "WORKDIR": m.enter, "ENV": m.env, "ARG": m.arg, "USER": m.become}
	for _, i := range all {
		step := steps[i.name]
		switch {
		case slices.Contains([]string{"LABEL", "MAINTAINER", "EXPOSE", "CMD"}, i.name):
			m.notes = append(m.notes, i.name+" has no effect on a task")
			continue
		case step == nil:
			return nil, refused(dockerfile, i.line, "the instruction %.32q is not translated", i.name)
		case !m.staged && i.name != "FROM" && i.name != "ARG":
			return nil, refused(dockerfile, i.line, "%s before FROM", i.name)
		}
		if err := step(i); err != nil {
			return nil, err
		}
	}
	if !m.staged {
		return nil, refused(dockerfile, 0, "it has no FROM")
	}
	m.notes = slices.Compact(slices.Sorted(slices.Values(m.notes)))
	return m, nil
}

// expand replaces variables as a Dockerfile does; ENV beats ARG.
func (m *image) expand(text string) string {
	return os.Expand(text, func(name string) string {
		name, otherwise, _ := strings.Cut(name, ":-")
		for _, of := range []map[string]string{m.variables, m.arguments, {"PATH": standardPath}} {
			if value, known := of[name]; known {
				return value
			}
		}
		return otherwise
	})
}

func (m *image) stage(i instruction) error {
	found, whole := words(m.expand(i.text))
	if len(found) > 0 && strings.HasPrefix(found[0], "--platform=") {
		if platform := strings.TrimPrefix(found[0], "--platform="); platform != "linux/amd64" {
			return refused(dockerfile, i.line, "FROM for the platform %q", platform)
		}
		found = found[1:]
	}
	named := len(found) == 3 && strings.EqualFold(found[1], "as")
	switch {
	case m.staged:
		return refused(dockerfile, i.line, "a second FROM: stages are not translated")
	case !whole || len(found) != 1 && !named:
		return refused(dockerfile, i.line, "FROM: cannot read %.80q", i.text)
	}
	m.from, m.staged = found[0], true
	m.arguments = map[string]string{} // those before FROM end with it
	return nil
}

// run adds a step with the variables and the folder of this point.
func (m *image) run(i instruction) error {
	text := i.text
	if strings.HasPrefix(text, "--") {
		return refused(dockerfile, i.line, "RUN with the flag %.40q", strings.Fields(text)[0])
	}
	if m.user != "root" {
		return refused(dockerfile, i.line, "RUN as the user %q: only root sets up", m.user)
	}
	var exec []string
	switch {
	case i.body != "" && strings.HasPrefix(text, "<<"):
		at := strings.LastIndexByte(i.body, '\n')
		text = i.body[:max(at, 0)]
	case i.body != "":
		text += "\n" + i.body
	case json.Unmarshal([]byte(i.text), &exec) == nil && len(exec) > 0:
		text = `exec ` + quoteAll(exec)
	}
	m.step(i.line, "sh", "-c", m.preamble()+text)
	return nil
}

func (m *image) preamble() string {
	var head strings.Builder
	for _, of := range []map[string]string{m.arguments, m.variables} {
		for _, key := range slices.Sorted(maps.Keys(of)) {
			head.WriteString("export " + key + "=" + quote(of[key]) + "\n")
		}
	}
	return head.String() + "cd " + quote(m.workdir) + "\n"
}

func (m *image) step(line int, command ...string) {
	m.script.WriteString("step " + number(line) + " " + quoteAll(command) + "\n")
}

func (m *image) enter(i instruction) error {
	found, whole := words(m.expand(i.text))
	if len(found) != 1 || !whole {
		return refused(dockerfile, i.line, "WORKDIR: cannot read %.80q", i.text)
	}
	m.workdir = path.Join("/", m.resolve(found[0]))
	m.step(i.line, "mkdir", "-p", m.workdir)
	return nil
}

// resolve is a path inside, from the folder of this point on. A slash at its end stays.
func (m *image) resolve(name string) string {
	if !path.IsAbs(name) {
		name = m.workdir + "/" + name
	}
	clean := path.Clean(name)
	if strings.HasSuffix(name, "/") && clean != "/" {
		clean += "/"
	}
	return clean
}

func (m *image) env(i instruction) error {
	text := i.text
	name, rest, _ := strings.Cut(text, " ")
	if !strings.Contains(name, "=") { // the old form: one name, and the rest of the line
		if !isName(name) {
			return refused(dockerfile, i.line, "ENV: %.64q is no name", name)
		}
		m.variables[name] = m.expand(strings.TrimSpace(rest))
		return nil
	}
	return assign(i, m.variables, m.expand, text)
}

func (m *image) arg(i instruction) error {
	name, value, _ := strings.Cut(i.text, "=")
	if !isName(name) {
		return refused(dockerfile, i.line, "ARG: cannot read %.80q", i.text)
	}
	return assign(i, m.arguments, m.expand, name+"="+value)
}

func assign(i instruction, to map[string]string, expand func(string) string, text string) error {
	found, whole := words(text)
	for _, word := range found {
		key, value, valued := strings.Cut(word, "=")
		if !whole || !valued || !isName(key) {
			return refused(dockerfile, i.line, "%s: cannot read %.80q", i.name, word)
		}
		to[key] = expand(value)
	}
	return nil
}

func (m *image) become(i instruction) (err error) {
	m.user, err = userOf(m.expand(i.text))
	if err != nil {
		return refused(dockerfile, i.line, "USER: %v", err)
	}
	return nil
}

// copy adds steps for files of the folder environment. What they are decides where they go.
func (m *image) copy(i instruction) error {
	text := i.text
	found, whole := words(m.expand(text))
	var list []string
	if json.Unmarshal([]byte(text), &list) == nil {
		found = list
	}
	if !whole || len(found) < 2 || strings.HasPrefix(found[0], "--") || strings.HasPrefix(found[0], "<<") {
		return refused(dockerfile, i.line, "%s: cannot translate %.80q", i.name, text)
	}
	target := m.resolve(found[len(found)-1])
	sources, err := m.sources(i, found[:len(found)-1])
	if err != nil {
		return err
	}
	if len(sources) > 1 && !strings.HasSuffix(target, "/") {
		target += "/"
	}
	for _, s := range sources {
		switch from := contextDir + "/" + s.name; {
		case s.dir:
			m.step(i.line, "mkdir", "-p", target)
			m.step(i.line, "cp", "-Rp", from+"/.", target)
		case strings.HasSuffix(target, "/"):
			m.step(i.line, "mkdir", "-p", target)
			m.step(i.line, "cp", "-Rp", from, target)
		default:
			m.step(i.line, "mkdir", "-p", path.Dir(target))
			m.step(i.line, "cp", "-Rp", from, target)
		}
	}
	return nil
}

type source struct {
	name string
	dir  bool
}

// sources finds what COPY names below the folder environment.
func (m *image) sources(i instruction, patterns []string) (all []source, err error) {
	for _, pattern := range patterns {
		if i.name == "ADD" && (strings.Contains(pattern, "://") || strings.HasPrefix(pattern, "git@") || isArchive(pattern)) {
			return nil, refused(dockerfile, i.line, "ADD of %.80q: only files that are copied as they are", pattern)
		}
		local := path.Clean(strings.TrimLeft(pattern, "/"))
		if !filepath.IsLocal(local) {
			return nil, refused(dockerfile, i.line, "%s: %.80q leads out of environment", i.name, pattern)
		}
		matches, err := filepath.Glob(filepath.Join(m.context, local))
		if err != nil || len(matches) == 0 {
			return nil, refused(dockerfile, i.line, "%s: there is no %.80q in environment", i.name, pattern)
		}
		for _, match := range matches {
			info, err := os.Stat(match)
			name, rerr := filepath.Rel(m.context, match)
			if err != nil || rerr != nil {
				return nil, refused(dockerfile, i.line, "%s: cannot read %.80q", i.name, pattern)
			}
			all = append(all, source{name, info.IsDir()})
		}
	}
	return all, nil
}

func isArchive(name string) bool {
	for _, ending := range []string{".tar", ".gz", ".tgz", ".bz2", ".xz", ".zst"} {
		if strings.HasSuffix(name, ending) {
			return true
		}
	}
	return false
}

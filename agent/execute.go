package agent

import (
	"path"
	"slices"
	"strings"
)

// ValidateExecute checks Execute. Whether a file exists is looked at by the start. The filter
// must be one that cannot make a program out of memory, which package runtime checks for a
// document.
func (s Spec) ValidateExecute() error {
	const field = "files.execute"
	list := s.Files.Execute
	switch {
	case list == nil:
		return nil
	case len(list) == 0:
		return wrong(field, "name at least the agent's own program, or omit the list, and all may be executed", "the list of programs is empty")
	case len(list) > entriesMost:
		return wrong(field, "name folders, or patterns", "there are %d, and may be %d", len(list), entriesMost)
	case !s.Files.ReadOnly:
		return wrong(field, "add read_only, or omit the list", "a list of programs needs a read-only root: in another one the agent changes what the names mean")
	case s.Seccomp.Profile == SeccompUnconfined:
		return wrong(field, "use the filter standard, strict or minimal, or omit the list", "a list of programs needs a filter: without one the agent makes programs in memory, and namespaces in which no list holds")
	}
	for i, entry := range list {
		if err := checkExecutable(field, entry); err != nil {
			return err
		}
		if slices.Contains(list[:i], entry) {
			return wrong(field, "name it once", "%s is in the list twice", entry)
		}
	}
	return nil
}

// checkExecutable accepts a clean path inside, or a pattern of path.Match.
func checkExecutable(field, entry string) error {
	if err := checkText(field, entry, pathMost); err != nil {
		return err
	}
	if !path.IsAbs(entry) || path.Clean(entry) != entry {
		return wrong(field, "write an absolute path inside, for example /usr/bin/python3", "%.64q is not an absolute path", entry)
	}
	if _, err := path.Match(entry, "/"); err != nil {
		return wrong(field, "write * and ? for names, [a-z] for one of several characters, \\[ for a bracket", "%.64q is not a pattern of paths", entry)
	}
	if slices.ContainsFunc([]string{"/proc", "/sys", "/dev"}, func(dir string) bool { return entry == dir || strings.HasPrefix(entry, dir+"/") }) {
		return wrong(field, "name a program of the base system", "nothing of the kernel's %s can be executed", entry)
	}
	if entry == "/" {
		return wrong(field, "name programs and folders, or omit the list", "/ is the whole root")
	}
	return nil
}

func checkExecute(s Spec) error { return s.ValidateExecute() }

// ExecuteEntry is a path as an entry of the list, where some characters would make a pattern.
func ExecuteEntry(at string) string {
	return strings.NewReplacer(`*`, `\*`, `?`, `\?`, `[`, `\[`, `\`, `\\`).Replace(at)
}

// MayExecute reports whether the list names a path inside: by itself, as a part of a
// directory, or by a pattern. It compares texts, and follows no link. Without a list it is true.
func (f Files) MayExecute(at string) bool {
	return f.Execute == nil || slices.ContainsFunc(f.Execute, func(entry string) bool {
		match, _ := path.Match(entry, at) // an entry that is no pattern matches nothing
		return match || at == entry || strings.HasPrefix(at, entry+"/")
	})
}

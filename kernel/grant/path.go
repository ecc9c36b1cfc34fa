package grant

import (
	"strings"

	"clove.run/clove/agent"
)

// parsePath reads an absolute path. It refuses what has two readings: `..` depends on
// links, a * looks like a glob and a colon like the start of rights. Only a slash at the
// end is dropped.
func parsePath(_ *Scope, pattern string) (string, *refusal) {
	if strings.ContainsAny(pattern, ":*") {
		return "", refuse("a path holds neither : nor *: it covers everything below it, and its rights are ro or rw")
	}
	below, absolute := strings.CutPrefix(pattern, "/")
	if !absolute {
		return "", refuse("the path does not begin with /")
	}
	below = strings.TrimSuffix(below, "/")
	if below == "" && pattern != "//" {
		return "/", nil
	}
	for part := range strings.SplitSeq(below, "/") {
		if part == "" || part == "." || part == ".." {
			return "", refuse("the path has the part %q", part)
		}
	}
	return "/" + below, nil
}

// parseFile reads a path of the agent's own, or RUN:PATH, a folder that another run keeps.
func parseFile(s *Scope, pattern string) (string, *refusal) {
	run, at, other := strings.Cut(pattern, ":")
	if strings.HasPrefix(pattern, "/") || !other {
		return parsePath(s, pattern)
	}
	if agent.ValidateName(run) != nil {
		return "", refuse("%s is no name of a run", quote(run))
	}
	at, no := parsePath(s, at)
	return run + ":" + at, no
}

// fileCovers compares by parts, within the files of one run: / is none of another's.
func fileCovers(wide, narrow Scope) bool {
	run, at := splitFile(wide.pattern)
	other, below := splitFile(narrow.pattern)
	return run == other && (at == "/" || at == below || strings.HasPrefix(below, at+"/"))
}

// splitFile cuts the name of another run off a pattern.
func splitFile(pattern string) (run, at string) {
	if strings.HasPrefix(pattern, "/") {
		return "", pattern
	}
	run, at, _ = strings.Cut(pattern, ":")
	return run, at
}

// parseNamespace reads the path of a namespace below the owner's own, which is /.
func parseNamespace(_ *Scope, pattern string) (string, *refusal) {
	if pattern == "/" {
		return pattern, nil
	}
	for part := range strings.SplitSeq(pattern, "/") {
		if agent.ValidateName(part) != nil {
			return "", refuse("%s is no name in a namespace's path", quote(part))
		}
	}
	return pattern, nil
}

// pathCovers compares by parts: /notes covers /notes/a and not /notes2.
func pathCovers(wide, narrow Scope) bool {
	if wide.pattern == "/" || wide.pattern == narrow.pattern {
		return true
	}
	return strings.HasPrefix(narrow.pattern, wide.pattern+"/")
}

// parseTaint reads a taint's name: a word, or a word and what it is about (agent:NAME).
func parseTaint(_ *Scope, pattern string) (string, *refusal) {
	word, about, found := strings.Cut(pattern, ":")
	if agent.ValidateName(word) != nil || found && agent.ValidateName(about) != nil {
		return "", refuse("%s is no taint", quote(pattern))
	}
	return pattern, nil
}

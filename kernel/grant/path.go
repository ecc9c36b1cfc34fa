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

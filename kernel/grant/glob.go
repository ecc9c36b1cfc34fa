package grant

import (
	"slices"
	"strings"
)

// nameSet are the characters of a name beside letters and digits. There is none that a
// shell, a URL or a path treats as something else than a part of a name.
const nameSet = "_.-/@+"

// parseGlob reads the name of a tool, agent, mailbox or secret, in which * stands for any
// run of characters, also none, and also across a slash.
func parseGlob(_ *Scope, pattern string) (string, *refusal) { return checkGlob(pattern, nameSet) }

// parseModel also allows a colon, which versions of models have: llama3:8b. A version that is
// a word of rights would make a text with two readings.
func parseModel(s *Scope, pattern string) (string, *refusal) {
	if _, rights := s.kind.splitRights(pattern); rights != NoRights {
		return "", refuse("the name of a model does not end in :%s", rights)
	}
	return checkGlob(pattern, nameSet+":")
}

// checkGlob returns the pattern as it is: each has one spelling.
func checkGlob(pattern, set string) (string, *refusal) {
	for _, r := range pattern {
		if !isAlnum(r) && r != '*' && !strings.ContainsRune(set, r) {
			return "", refuse("the name holds %+q", r)
		}
	}
	if first := rune(pattern[0]); !isAlnum(first) && !strings.ContainsRune("_@*", first) {
		return "", refuse("the name begins with %q", first)
	}
	if strings.Contains(pattern, "**") {
		return "", hinted(refuse("it has two * in a row"), "write one *, which also crosses a /")
	}
	for part := range strings.SplitSeq(pattern, "/") {
		if part == "" || part == "." || part == ".." {
			return "", refuse("the name has the part %q", part)
		}
	}
	return pattern, nil
}

func isAlnum(r rune) bool {
	return 'a' <= r && r <= 'z' || 'A' <= r && r <= 'Z' || '0' <= r && r <= '9'
}

func noStar(s Scope) bool { return !strings.Contains(s.pattern, "*") }

// globCovers matches the narrow pattern as text, in which * is a character that no name
// has. Only a * of the wide pattern matches that character, and would match any run in its
// place, so every name of the narrow pattern matches the wide one. The reverse holds where
// the wide pattern lacks at least one character of names: put in the place of each *, it
// makes a name that only the narrow pattern matches. Other patterns may be refused wrongly.
func globCovers(wide, narrow Scope) bool { return globMatches(wide.pattern, narrow.pattern) }

// Named are the tools that a grant covers only by their name: they run programs, or reach the network.
var Named = []string{"exec", "fetch", "git"}

// toolCovers is globCovers, but for the tools that must be named.
func toolCovers(wide, narrow Scope) bool {
	if slices.Contains(Named, narrow.pattern) {
		return wide.pattern == narrow.pattern
	}
	return globCovers(wide, narrow)
}

// globMatches goes back to the last * only, because it can match whatever an earlier one
// would match in addition. So the time is at most the product of the lengths.
func globMatches(pattern, text string) bool {
	p, t := 0, 0
	star, mark := -1, 0
	for t < len(text) {
		switch {
		case p < len(pattern) && pattern[p] == '*':
			star, mark = p, t
			p++
		case p < len(pattern) && pattern[p] == text[t]:
			p, t = p+1, t+1
		case star >= 0:
			mark++
			p, t = star+1, mark
		default:
			return false
		}
	}
	return strings.Trim(pattern[p:], "*") == ""
}

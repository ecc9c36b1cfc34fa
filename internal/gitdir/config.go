package gitdir

import (
	"net/url"
	"slices"
	"strings"
)

// setting is one value of a git configuration (git-config(1), "Syntax").
type setting struct {
	section, sub, key, value string
}

// name is the setting's name with a star for its subsection: remote.*.url.
func (s setting) name() string {
	if s.sub == "" {
		return s.section + "." + s.key
	}
	return s.section + ".*." + s.key
}

// shownSettings are those that an agent needs to work with the repository. No other is shown: a
// configuration has passwords (http.extraHeader, url.insteadOf), and names programs of the host.
var shownSettings = []string{
	"core.repositoryformatversion", "core.filemode", "core.bare", "core.ignorecase", "core.precomposeunicode", "core.symlinks",
	"core.autocrlf", "core.eol", "core.safecrlf", "core.logallrefupdates", "core.sparsecheckout", "core.sparsecheckoutcone",
	"core.abbrev", "core.quotepath", "extensions.objectformat", "user.name", "user.email", "init.defaultbranch",
	"branch.*.remote", "branch.*.merge", "branch.*.rebase", "remote.*.fetch", "remote.*.url", "remote.*.pushurl",
	"pull.rebase", "pull.ff", "merge.ff", "merge.conflictstyle", "rebase.autosquash", "diff.renames", "diff.algorithm",
}

// shown is the configuration that an agent gets.
func shown(all []setting) string {
	var out strings.Builder
	for _, s := range all {
		if !slices.Contains(shownSettings, s.name()) {
			continue
		}
		if strings.HasSuffix(s.key, "url") {
			s.value = withoutCredentials(s.value)
		}
		out.WriteString("[" + s.section)
		if s.sub != "" {
			out.WriteString(" " + quoted(s.sub))
		}
		out.WriteString("]\n\t" + s.key + " = " + quoted(s.value) + "\n")
	}
	return out.String()
}

// withoutCredentials removes user, password and query of a URL. A path and an address of ssh
// (git@host:path) have none.
func withoutCredentials(text string) string {
	if !strings.Contains(text, "://") {
		return text
	}
	at, err := url.Parse(text)
	if err != nil {
		return ""
	}
	at.User, at.RawQuery, at.Fragment = nil, "", ""
	return at.String()
}

func quoted(text string) string {
	return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\t", `\t`).Replace(text) + `"`
}

// settingsIn reads a configuration. It follows no include, and skips what it does not understand:
// what it does not return is not shown.
func settingsIn(text string) (all []setting) {
	var at setting
	text = strings.ReplaceAll(strings.ReplaceAll(text, "\r\n", "\n"), "\\\n", "")
	for line := range strings.SplitSeq(text, "\n") {
		line = strings.TrimSpace(line)
		if head, rest, ok := strings.Cut(line, "]"); ok && strings.HasPrefix(line, "[") {
			at = sectionOf(head[1:])
			line = strings.TrimSpace(rest)
		}
		key, value, given := strings.Cut(line, "=")
		key = strings.ToLower(strings.TrimSpace(key))
		if at.section == "" || key == "" || strings.ContainsAny(key, "#;[ \"") {
			continue
		}
		at.key, at.value = key, "true"
		if given {
			at.value = unquoted(strings.TrimSpace(value))
		}
		all = append(all, at)
	}
	return all
}

// sectionOf reads what stands between brackets: section, or section "sub".
func sectionOf(head string) setting {
	section, sub, _ := strings.Cut(strings.TrimSpace(head), " ")
	section = strings.ToLower(section)
	if strings.ContainsAny(section, ".\"") {
		return setting{} // the old form section.sub
	}
	return setting{section: section, sub: unquoted(strings.TrimSpace(sub))}
}

// unquoted removes quotes, escapes, and a comment at the end.
func unquoted(text string) string {
	var out strings.Builder
	inside, escaped := false, false
	for i := range len(text) {
		c := text[i]
		switch {
		case escaped:
			out.WriteString(strings.NewReplacer("n", "\n", "t", "\t", "b", "\b").Replace(string(c)))
			escaped = false
		case c == '\\':
			escaped = true
		case c == '"':
			inside = !inside
		case (c == '#' || c == ';') && !inside:
			return strings.TrimSpace(out.String())
		default:
			out.WriteByte(c)
		}
	}
	return out.String()
}

// lookup is the last value of a setting; empty: there is none.
func lookup(all []setting, name string) (value string) {
	for _, s := range all {
		if s.name() == name {
			value = s.value
		}
	}
	return value
}

package agent

import (
	"regexp"
	"slices"
	"strings"
)

// Redacted replaces a value that is not shown.
const Redacted = "(redacted)"

// secretParts mark a variable's name as that of a secret anywhere in the name, secretWords
// only as a whole word between separators: "KEY" is in KEYBOARD too.
var (
	secretParts = []string{"SECRET", "TOKEN", "PASSWD", "PASSWORD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "PRIVATE", "COOKIE", "SIGNATURE", "BEARER"}
	secretWords = []string{"KEY", "KEYS", "PASS", "PWD", "AUTH", "PAT", "DSN", "SALT", "PIN", "OTP", "JWT", "WEBHOOK"}
)

// WithoutEnv returns the run as lists show it. Lists have no use for environment values,
// and some of them are secrets.
func (r Run) WithoutEnv() Run {
	r.Spec.Env = nil
	return r
}

// WithoutSecrets returns the run for display by itself. It redacts the value of each
// variable whose name marks a secret, and passwords in URLs in all values. It cannot
// recognise a secret under another name.
func (r Run) WithoutSecrets() Run {
	r.Spec.Env = slices.Clone(r.Spec.Env)
	// A password in a URL, RFC 3986 section 3.2.1. A package variable would be compiled at
	// each start, and linked into clove-gate.
	userInfo := regexp.MustCompile(`(://[^/?#@\s:]*:)[^/?#\s]*@`)
	for i, entry := range r.Spec.Env {
		name, value, _ := strings.Cut(entry, "=")
		// An empty value shows that the variable is set to nothing, which is no secret.
		if value != "" && namesSecret(name) {
			value = Redacted
		}
		r.Spec.Env[i] = name + "=" + userInfo.ReplaceAllString(value, "${1}"+Redacted+"@")
	}
	return r
}

// namesSecret excludes PWD and OLDPWD, which shells use for directories.
func namesSecret(name string) bool {
	name = strings.ToUpper(name)
	if name == "PWD" || name == "OLDPWD" {
		return false
	}
	words := strings.FieldsFunc(name, func(c rune) bool { return c == '_' || c == '-' || c == '.' })
	return slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(name, part) }) ||
		slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) })
}

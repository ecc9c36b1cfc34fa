package agent

import (
	"regexp"
	"slices"
	"strings"
)

// Redacted stands in the place of a value that is not shown.
const Redacted = "(redacted)"

// secretParts make a variable's name one of a secret wherever they stand in it;
// secretWords only as a whole word between underscores.
var (
	secretParts = []string{"SECRET", "TOKEN", "PASSWD", "PASSWORD", "PASSPHRASE", "CREDENTIAL", "APIKEY", "PRIVATE", "COOKIE", "SIGNATURE", "BEARER"}
	secretWords = []string{"KEY", "KEYS", "PASS", "PWD", "AUTH", "PAT", "DSN", "SALT", "PIN", "OTP", "JWT", "WEBHOOK"}
)

// userInfo is the password of a URL, RFC 3986 section 3.2.1.
var userInfo = regexp.MustCompile(`(://[^/?#@\s:]*:)[^/?#\s]*@`)

// WithoutEnv is the run for a list: nobody looks for values of the environment
// there, and some are secrets.
func (r Run) WithoutEnv() Run {
	r.Spec.Env = nil
	return r
}

// WithoutSecrets is the run for whoever looks at it alone: values of the
// environment are redacted where the variable's name says that it is a secret, and
// passwords in URLs everywhere. A secret under another name stays.
func (r Run) WithoutSecrets() Run {
	r.Spec.Env = slices.Clone(r.Spec.Env)
	for i, entry := range r.Spec.Env {
		name, value, _ := strings.Cut(entry, "=")
		if value != "" && namesSecret(name) {
			value = Redacted
		}
		r.Spec.Env[i] = name + "=" + userInfo.ReplaceAllString(value, "${1}"+Redacted+"@")
	}
	return r
}

// namesSecret knows PWD and OLDPWD for the shell's directories.
func namesSecret(name string) bool {
	name = strings.ToUpper(name)
	if name == "PWD" || name == "OLDPWD" {
		return false
	}
	words := strings.FieldsFunc(name, func(c rune) bool { return c == '_' || c == '-' || c == '.' })
	return slices.ContainsFunc(secretParts, func(part string) bool { return strings.Contains(name, part) }) ||
		slices.ContainsFunc(words, func(word string) bool { return slices.Contains(secretWords, word) })
}

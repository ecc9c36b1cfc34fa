package agent

import (
	"net/url"
	"strings"
)

// calloutMost bounds a command or a URL, in bytes.
const calloutMost = 1024

// IsURL reports whether a callout is a URL, not a command: whether it begins with a word and
// "://".
func IsURL(text string) bool {
	scheme, _, found := strings.Cut(text, "://")
	return found && scheme != "" && strings.Trim(strings.ToLower(scheme), "abcdefghijklmnopqrstuvwxyz0123456789+-.") == ""
}

// ValidateCallout refuses what can be neither a command nor the URL of a webhook. The empty
// text is none of both, and sound.
func ValidateCallout(field, text string) error {
	if err := checkText(field, text, calloutMost); err != nil || !IsURL(text) {
		return err
	}
	const hint = "use a command, or for example https://hooks.example/clove"
	u, err := url.Parse(text)
	switch {
	case err != nil || u.Hostname() == "":
		return wrong(field, hint, "%.64q is not a URL", text)
	case u.Scheme != "http" && u.Scheme != "https":
		return wrong(field, hint, "%.32q is neither http nor https", u.Scheme)
	case u.User != nil || u.Fragment != "":
		return wrong(field, hint, "the URL has a user or a fragment")
	}
	return nil
}

// HasCommands reports whether a mark of a budget executes a command on the host.
func (k Kernel) HasCommands() bool {
	return k.OnWarn != "" && !IsURL(k.OnWarn) || k.OnEnd != "" && !IsURL(k.OnEnd)
}

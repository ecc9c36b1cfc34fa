package agent

import (
	"net/url"
	"path/filepath"
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

// HasCommands reports whether a mark of a budget, or a question, executes a command on the host.
func (k Kernel) HasCommands() bool {
	return k.OnWarn != "" && !IsURL(k.OnWarn) || k.OnEnd != "" && !IsURL(k.OnEnd) || k.OnAsk != "" && !IsURL(k.OnAsk)
}

// checkOnAsk refuses a command that could answer no question, and a key that the agent could read.
func checkOnAsk(s Spec) error {
	k := s.Kernel
	if err := ValidateCallout("kernel.on_ask", k.OnAsk); err != nil {
		return err
	}
	switch {
	case k.OnAsk == "" && k.OnAskKey == "":
		return nil
	case k.OnAsk == "" || len(k.Asks) == 0:
		return wrong("kernel.on_ask", "use --ask, --on-ask and --on-ask-key together", "there is nothing to answer, or nothing that answers")
	case !filepath.IsAbs(k.OnAskKey) || filepath.Clean(k.OnAskKey) != k.OnAskKey:
		return wrong("kernel.on_ask_key", "name a file that only you may read, by its whole path: --on-ask-key /PATH/FILE", "%.256q is no absolute path", k.OnAskKey)
	}
	if dir := s.ShownFrom(k.OnAskKey); dir != "" {
		return wrong("kernel.on_ask_key", "keep it where the agent sees nothing", "the agent could read the key: it lies in %.256s", dir)
	}
	return checkText("kernel.on_ask_key", k.OnAskKey, calloutMost)
}

// ShownFrom is the workspace or the source of a mount in which a path of the host lies; empty: the agent is shown none.
func (s Spec) ShownFrom(path string) string {
	shown := []string{s.Files.Workspace}
	for _, bind := range s.Files.Binds {
		shown = append(shown, bind.Source)
	}
	for _, dir := range shown {
		if dir != "" && (path == dir || strings.HasPrefix(path, strings.TrimSuffix(dir, "/")+"/")) {
			return dir
		}
	}
	return ""
}

package harbor

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// quote writes a text so that a shell reads it back as one word.
func quote(text string) string { return "'" + strings.ReplaceAll(text, "'", `'\''`) + "'" }

func quoteAll(words []string) string {
	quoted := make([]string, len(words))
	for i, word := range words {
		quoted[i] = quote(word)
	}
	return strings.Join(quoted, " ")
}

func number(n int) string { return strconv.Itoa(n) }

// isName reports whether a shell can have a variable of this name.
func isName(text string) bool {
	return regexp.MustCompile(`^[A-Za-z_][A-Za-z0-9_]*$`).MatchString(text)
}

// userOf translates a user of an image: names other than root stand in the image's own list.
func userOf(user any) (string, error) {
	switch text := strings.TrimSpace(fmt.Sprint(user)); {
	case user == nil || text == "" || text == "0" || text == "root":
		return "root", nil
	case regexp.MustCompile(`^[0-9]+(:[0-9]+)?$`).MatchString(text):
		return text, nil
	default:
		return "", fmt.Errorf("the name %q is known in the image only; a number is needed", text)
	}
}

// asWord makes a folder's name the name of a task.
func asWord(name string) string {
	name = strings.Trim(regexp.MustCompile(`[^A-Za-z0-9_-]+`).ReplaceAllString(name, "-"), "-_")
	return strings.TrimRight(name[:min(len(name), 63)], "-_")
}

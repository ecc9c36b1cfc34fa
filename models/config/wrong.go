package config

import (
	"fmt"

	"clove.run/clove/agent"
)

// wrong is an error about one place of a file, as providers.openai.url.
func wrong(at, hint, format string, arguments ...any) error {
	message := fmt.Sprintf(format, arguments...)
	if at != "" {
		message = at + ": " + message
	}
	return &agent.Error{Kind: agent.KindInvalid, Message: message, Hint: hint}
}

func join(at, key string) string {
	if at == "" {
		return key
	}
	return at + "." + key
}

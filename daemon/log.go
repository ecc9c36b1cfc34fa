package daemon

import (
	"fmt"
	"log/slog"
)

// level reads a word of the configuration.
func level(word string) (slog.Level, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(word)); err != nil {
		return l, fmt.Errorf("log_level: %q is not debug, info, warn or error", word)
	}
	return l, nil
}

// Level is the configured level of cloved's own log.
func (c Config) Level() slog.Level {
	l, _ := level(c.LogLevel) // it was checked
	return l
}

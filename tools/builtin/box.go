package builtin

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path/filepath"
	"strings"

	"clove.run/clove/tools"
)

// Box is where tools work.
type Box struct {
	Dir  string // that relative paths begin at, absolute
	Most int    // bytes of a result, but for a line on what was left out
}

// functions are those of the built-in tools, by name.
var functions = map[string]func(b *Box, ctx context.Context, arguments []byte) (string, error){
	"echo":  with((*Box).Echo),
	"read":  with((*Box).Read),
	"write": with((*Box).Write),
	"edit":  with((*Box).Edit),
	"glob":  with((*Box).Glob),
	"grep":  with((*Box).Grep),
	"list":  with((*Box).List),
	"exec":  with((*Box).Exec),
	"fetch": with((*Box).Fetch),
	"git":   with((*Box).Git),
}

// Do makes a call of a built-in tool, or of a command. The arguments fit the tool's schema.
// A failure may have a part of the result.
func (b *Box) Do(ctx context.Context, o tools.Order) (string, error) {
	if o.Command != nil {
		return b.command(ctx, o)
	}
	do, known := functions[o.Tool]
	if !known {
		return "", &Invalid{fmt.Errorf("there is no built-in tool %.64q", o.Tool)}
	}
	return do(b, ctx, o.Arguments)
}

// Invalid is an error because of which nothing was done: the arguments do not fit.
type Invalid struct{ Err error }

func (i *Invalid) Error() string { return i.Err.Error() }
func (i *Invalid) Unwrap() error { return i.Err }

func invalid(format string, a ...any) error { return &Invalid{fmt.Errorf(format, a...)} }

// with decodes a tool's arguments.
func with[A any](run func(*Box, context.Context, A) (string, error)) func(*Box, context.Context, []byte) (string, error) {
	return func(b *Box, ctx context.Context, arguments []byte) (string, error) {
		var a A
		if len(bytes.TrimSpace(arguments)) > 0 {
			decoder := json.NewDecoder(bytes.NewReader(arguments))
			decoder.DisallowUnknownFields()
			if err := decoder.Decode(&a); err != nil {
				return "", invalid("the arguments do not fit: %w", err)
			}
		}
		return run(b, ctx, a)
	}
}

// EchoArguments are those of echo.
type EchoArguments struct {
	Text string `json:"text"`
}

// Echo returns a text.
func (b *Box) Echo(_ context.Context, a EchoArguments) (string, error) { return a.Text, nil }

// path is a path as the tools take it.
func (b *Box) path(given string) (string, error) {
	switch {
	case given == "":
		return "", errors.New("path is empty")
	case strings.ContainsRune(given, 0):
		return "", errors.New("path has a NUL byte")
	case filepath.IsAbs(given):
		return given, nil
	}
	return filepath.Join(b.Dir, given), nil
}

// dir is a folder as the tools take it: absent, the working directory.
func (b *Box) dir(given string) (string, error) {
	if given == "" {
		return b.Dir, nil
	}
	return b.path(given)
}

// cut bounds a text and makes it UTF-8.
func (b *Box) cut(text string) string { return Cut(text, b.Most) }

// Cut bounds a text to so many bytes, at a character, and says in a line beyond them how many are
// left out. What is no UTF-8 is replaced.
func Cut(text string, most int) string {
	text = strings.ToValidUTF8(text, "\uFFFD")
	if len(text) <= most {
		return text
	}
	whole := strings.ToValidUTF8(text[:max(most, 0)], "")
	return fmt.Sprintf("%s\n[%d bytes left out]", whole, len(text)-len(whole))
}

// or is a value within a bound, or a default for 0.
func or(given, otherwise, most int) int {
	if given <= 0 {
		return otherwise
	}
	return min(given, most)
}

// encode is a result in JSON. Its text fields are shortened by fit until it has no more than
// Most bytes.
func (b *Box) encode(result any, fit func(excess int) bool) (string, error) {
	for {
		text, err := json.Marshal(result)
		if err != nil {
			return "", err
		}
		if len(text) <= b.Most || !fit(len(text)-b.Most) {
			return string(text), nil
		}
	}
}

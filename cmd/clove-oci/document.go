package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"unicode/utf8"

	"clove.run/clove/agent"
)

// decode reads one of the engine's documents. encoding/json would replace bytes that are not UTF-8,
// and surrogates without their other half, and the container would name another file.
func decode(from *os.File, into any) error {
	text, err := io.ReadAll(from)
	switch {
	case err != nil:
		return err
	case !utf8.Valid(text):
		err = errors.New("it has bytes that are not UTF-8")
	case agent.UnpairedSurrogates(text) > 0:
		err = errors.New("it has surrogates that are not in pairs")
	default:
		return json.NewDecoder(bytes.NewReader(text)).Decode(into)
	}
	return fmt.Errorf("cannot read %s: %w, which JSON cannot carry: rename what it names", from.Name(), err)
}

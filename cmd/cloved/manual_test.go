package main

import (
	"bytes"
	"errors"
	"flag"
	"regexp"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/internal/doctest"
)

// TestTheManualPageHasTheFlags: those that --help shows, and no others.
func TestTheManualPageHasTheFlags(t *testing.T) {
	var help bytes.Buffer
	if _, err := readOptions([]string{"--help"}, &help); !errors.Is(err, flag.ErrHelp) {
		t.Fatal(err)
	}
	var shown []string
	for _, match := range regexp.MustCompile(`(?m)^  -(\S+)`).FindAllStringSubmatch(help.String(), -1) {
		shown = append(shown, "--"+match[1])
	}
	if len(shown) == 0 {
		t.Fatalf("no flags: %s", &help)
	}
	terms := doctest.Terms(t, "integration/package/cloved.8")
	for _, name := range shown {
		if !slices.Contains(terms, name) {
			t.Errorf("the manual page has no %s", name)
		}
	}
	for _, term := range terms {
		if strings.HasPrefix(term, "--") && !slices.Contains(shown, term) {
			t.Errorf("the manual page has %s, which is no flag", term)
		}
	}
}

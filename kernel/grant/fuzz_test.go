package grant

import (
	"strings"
	"testing"
)

// FuzzParse: whatever parses has one text, which parses to the same, and Covers is
// reflexive and transitive on it.
func FuzzParse(f *testing.F) {
	for _, row := range coverRows {
		for _, text := range row.covered {
			f.Add(row.wide, text, row.wide)
		}
		for _, text := range row.beyond {
			f.Add(row.wide, text, "net:::ffff:10.0.0.1")
		}
	}
	for _, texts := range refusedScopes {
		f.Add(texts[0], texts[len(texts)-1], "audit:/")
	}
	f.Fuzz(func(t *testing.T, a, b, c string) {
		var scopes []Scope
		for _, text := range []string{a, b, c} {
			s, err := Parse(text)
			if err != nil {
				continue
			}
			again, err := Parse(s.String())
			if err != nil || again != s || again.String() != s.String() {
				t.Fatalf("%q is %+v, and then %+v, %v", text, s, again, err)
			}
			if len(s.Pattern()) > PatternMost || strings.ContainsAny(s.String(), "\n\r\x00\x1b") {
				t.Fatalf("%q is %q", text, s)
			}
			scopes = append(scopes, s)
		}
		if err := checkCoverage(scopes...); err != nil {
			t.Fatal(err)
		}
	})
}

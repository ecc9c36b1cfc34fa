package format

import (
	"slices"
	"strings"
	"testing"
)

func TestBetas(t *testing.T) {
	t.Parallel()
	for header, want := range map[string][]string{
		"": nil,
		"claude-code-20250219, interleaved-thinking-2025-05-14,context-management-2025-06-27": {"claude-code-20250219", "interleaved-thinking-2025-05-14", "context-management-2025-06-27"},
		"oauth-2025-04-20,files-api-2025-04-14,files-api-2025-04-14,,":                        {"files-api-2025-04-14"},
		"server-side-fallback-2026-06-01":                                                     nil,
		"compact":                                                                             nil,
		"compact-2026-01-12\r\nX-Api-Key: x":                                                  nil,
		"compact-2026-01-12\x00":                                                              nil,
		"Compact-2026-01-12":                                                                  nil,
		"compact-2026-01-12;q=1":                                                              nil,
	} {
		if got := Betas(header); !slices.Equal(got, want) {
			t.Errorf("%q: %q, want %q", header, got, want)
		}
	}
	var many []string
	for day := range 90 {
		many = append(many, "compact-202601"+string(rune('0'+day/10))+string(rune('0'+day%10)))
	}
	if got := Betas(strings.Join(many, ",")); len(got) != 32 {
		t.Errorf("%d values", len(got))
	}
}

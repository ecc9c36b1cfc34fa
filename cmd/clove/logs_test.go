package main

import (
	"clove.run/clove/policies/settings"
	"testing"
	"time"
)

func TestParseSince(t *testing.T) {
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for text, want := range map[string]time.Time{"": {}, "10m": now.Add(-10 * time.Minute), "2026-01-02T03:00:00Z": now.Add(-4*time.Minute - 5*time.Second)} {
		if got, err := parseSince(text, now); err != nil || !got.Equal(want) {
			t.Errorf("%q: %v, %v", text, got, err)
		}
	}
	for _, text := range []string{"yesterday", "-5m", "2026-13-01T00:00:00Z"} {
		if got, err := parseSince(text, now); err == nil {
			t.Errorf("%q is %v", text, got)
		}
	}
}

// FuzzParseSince: a time is in the future only if it was written so.
func FuzzParseSince(f *testing.F) {
	for _, seed := range []string{"", "10m", "1h30m", "2026-01-02T15:04:05Z", "-1s", "9999999h", "1e9s", "0", "\x00", "2026-01-03"} {
		f.Add(seed)
	}
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	f.Fuzz(func(t *testing.T, text string) {
		when, err := parseSince(text, now)
		if _, noSpan := settings.ParseClock(flagSince, text); err == nil && noSpan == nil && when.After(now) {
			t.Errorf("%q is %v", text, when)
		}
	})
}

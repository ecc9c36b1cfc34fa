package config

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// What the file does not say of a model is taken from the built-in table, at the provider's
// own servers.
func TestWhatIsKnownOfAModel(t *testing.T) {
	t.Parallel()
	c := parsed(t, `
providers:
  claude: {family: anthropic, url: "https://api.anthropic.com"}
  proxy: {family: anthropic, url: "https://proxy.example/anthropic"}
models:
  claude-haiku-5-5: {targets: [{provider: claude}]}
  small: {targets: [{provider: claude, model: claude-haiku-4-5-20251001}], context: 1000}
  same: {targets: [{provider: proxy, model: claude-haiku-5-5}]}
`)
	for name, want := range map[string]string{"claude-haiku-5-5": "claude-haiku-5-5 1000000 128000 100", "small": "claude-haiku-4-5-20251001 1000 64000 1000", "same": "claude-haiku-5-5 0 0 no price"} {
		targets, err := c.Resolve(name, 0, nil)
		if err != nil {
			t.Fatal(err)
		}
		at, price := targets[0], "no price"
		if at.Price != nil {
			price = fmt.Sprint(at.Price.In)
		}
		if got := fmt.Sprint(at.Model, " ", at.Context, " ", at.MaxOutput, " ", price); got != want || at.Factor != 1 || at.Weight != 1 {
			t.Errorf("%s: %s", name, got)
		}
	}
}

// Targets are tried by their fallback, and as written among those of the same.
func TestOrderOfTrial(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		order := rapid.SliceOfN(rapid.IntRange(0, 4), 1, maxTargets).Draw(rt, "fallback")
		var text strings.Builder
		text.WriteString("models: {m: {targets: [")
		for i, fallback := range order {
			fmt.Fprintf(&text, "{provider: echo, model: t%d, fallback: %d}, ", i, fallback)
		}
		c, err := Parse([]byte(text.String() + "]}}"))
		if err != nil {
			rt.Fatal(err)
		}
		targets, err := c.Resolve("m", 1, nil)
		if err != nil || len(targets) != len(order) {
			rt.Fatalf("%v, %v", targets, err)
		}
		want := make([]string, 0, len(order))
		for fallback := range maxTargets {
			for i, f := range order {
				if f == fallback {
					want = append(want, fmt.Sprintf("t%d", i))
				}
			}
		}
		got := make([]string, 0, len(order))
		for _, target := range targets {
			got = append(got, target.Model)
		}
		if !slices.Equal(got, want) {
			rt.Fatalf("%v: %v", order, got)
		}
	})
}

// Whatever a user may use, root may use, and each name that is listed leads to a target.
func TestNamesAreThoseThatResolve(t *testing.T) {
	t.Parallel()
	c := parsed(t, example)
	rapid.Check(t, func(t *rapid.T) {
		uid := rapid.SampledFrom([]uint32{0, 1, 1000, 1001}).Draw(t, "user")
		groups := rapid.SliceOfN(rapid.Uint32Range(48, 52), 0, 3).Draw(t, "groups")
		names, roots := c.Names(uid, groups), c.Names(0, nil)
		for _, name := range roots {
			targets, err := c.Resolve(name, uid, groups)
			if listed := slices.Contains(names, name); listed != (err == nil) {
				t.Fatalf("user %d, %v: %s is listed: %t, and %v", uid, groups, name, listed, err)
			}
			for _, target := range targets {
				if !target.Provider.Allows(uid, groups) {
					t.Fatalf("user %d, %v: %s leads to %s", uid, groups, name, target.Provider.Name)
				}
			}
		}
		if !slices.IsSorted(names) || len(names) > len(roots) {
			t.Fatalf("%q", names)
		}
	})
}

package config

import (
	"errors"
	"testing"

	"clove.run/clove/agent"
)

// FuzzParse: a text is refused with an error of KindInvalid and a hint, or makes a
// configuration in which root may use every name.
func FuzzParse(f *testing.F) {
	f.Add(example)
	for _, row := range refused {
		f.Add(row.text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		c, err := Parse([]byte(text))
		if err != nil {
			if agent.KindOf(err) != agent.KindInvalid || hintOf(err) == "" {
				t.Fatalf("%v, hint %q", err, hintOf(err))
			}
			return
		}
		for _, name := range c.Names(0, nil) {
			targets, err := c.Resolve(name, 0, nil)
			if err != nil || len(targets) == 0 || len(targets) > maxTargets {
				t.Fatalf("%s: %v, %v", name, targets, err)
			}
			for i, target := range targets {
				if target.Provider == nil || target.Factor < 1 || i > 0 && target.Fallback < targets[i-1].Fallback {
					t.Fatalf("%s: %+v", name, target)
				}
			}
		}
		var unknown *UnknownModelError
		if _, err := c.Resolve("*", 0, nil); !errors.As(err, &unknown) {
			t.Fatalf("* is a model: %v", err)
		}
	})
}

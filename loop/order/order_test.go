package order

import (
	"strings"
	"testing"
)

// What Args writes, Parse reads.
func TestAnOrderArrives(t *testing.T) {
	for _, o := range []Order{
		{Model: "small", Prompt: "--help"},
		{Model: "a/b:c", Instructions: "be\nbrief -- please", Iterations: 3, Context: 2000, Prompt: "-x\n\"'$"},
		{Model: "small", Chat: true},
	} {
		got, err := Parse(o.Args())
		want := o
		if want.Iterations == 0 {
			want.Iterations = Iterations
		}
		if want.Context == 0 {
			want.Context = Context
		}
		if err != nil || got != want {
			t.Errorf("%+v became %+v, %v", want, got, err)
		}
	}
}

func TestWhatIsNoOrder(t *testing.T) {
	for text, want := range map[string]string{
		"":                                "no model",
		"--model=m":                       "prompt is empty",
		"--model=m a b":                   "one prompt",
		"--model=m --chat x":              "standard input",
		"--model=m --context=10 x":        "tokens",
		"--model=m --max-iterations=-1 x": "iterations",
		"--model=m --nosuch x":            "nosuch",
	} {
		if _, err := Parse(strings.Fields(text)); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

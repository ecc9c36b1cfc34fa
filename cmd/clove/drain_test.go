package main

import (
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

func TestDrain(t *testing.T) {
	for line, want := range map[string]bool{"": true, "--undo": false} {
		b := newBench(t)
		f := b.cloved()
		f.answer(methods.Drain.Name, api.Nothing{})
		args := []string{"drain"}
		if line != "" {
			args = append(args, line)
		}
		var asked api.DrainParams
		status, stdout, stderr := b.clove(args...)
		f.heard(methods.Drain.Name, &asked)
		if status != 0 || stdout != "" || stderr != "" || asked.On != want {
			t.Errorf("%q: %d, %q, %q, %+v", line, status, stdout, stderr, asked)
		}
	}
	if status, _, _ := newBench(t).clove("drain", "now"); status != exitFailed {
		t.Errorf("it takes an argument: %d", status)
	}
}

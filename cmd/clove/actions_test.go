package main

import (
	"reflect"
	"testing"

	"github.com/urfave/cli/v2"
)

// TestNoFlagHasAnAction: an action in Before would keep the flag's own action from running.
func TestNoFlagHasAnAction(t *testing.T) {
	var flags int
	var look func(commands []*cli.Command)
	look = func(commands []*cli.Command) {
		for _, c := range commands {
			for _, f := range c.Flags {
				flags++
				if action := reflect.ValueOf(f).Elem().FieldByName("Action"); action.IsValid() && !action.IsNil() {
					t.Errorf("%s: %s has an action", c.Name, f.Names()[0])
				}
			}
			look(c.Subcommands)
		}
	}
	look(program{}.commands())
	if flags < 50 {
		t.Errorf("control: only %d flags were looked at", flags)
	}
}

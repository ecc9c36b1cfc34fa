package main

import (
	"reflect"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/cmd/clove/verbs"
)

// Each flag of a usage line is one of the command's, and each flag of a command with several verbs is of
// at least one of them.
func TestUsageLinesNameFlags(t *testing.T) {
	for _, c := range table() {
		taken := map[string]bool{}
		for _, v := range c.verbs {
			for _, flag := range v.also {
				taken[flag] = true
			}
			if v.free {
				continue
			}
			for _, form := range strings.Split(v.line, "\n") {
				for _, spelled := range c.parsed(verb{line: form}).Flags {
					f := c.flag(spelled)
					if f == nil {
						t.Errorf("%s: %s is no flag", form, spelled)
						continue
					}
					taken[f.Names()[0]] = true
				}
			}
		}
		for _, f := range c.flags {
			if len(c.verbs) > 1 && c.alone == nil && !taken[f.Names()[0]] {
				t.Errorf("%s: no verb takes --%s", c.name(), f.Names()[0])
			}
		}
	}
}

// The arguments of a verb's line fill a field of its method's parameters, if they fill one at all, and a call
// for each run has a field for it.
func TestLinesFillParameters(t *testing.T) {
	calls := 0
	for _, c := range table() {
		for _, v := range c.verbs {
			act := reflect.ValueOf(v.act)
			if act.Kind() != reflect.Pointer {
				continue // by hand
			}
			calls++
			params := act.Elem().FieldByName("ask").Type().In(3)
			usage := c.parsed(v)
			var names []string
			for _, a := range usage.Args {
				if _, known := inputs()[a.Name]; !known && !v.free {
					t.Errorf("%s: nothing reads %s", v.line, a.Name)
				}
				names = append(names, a.Name)
			}
			for _, spelled := range usage.Flags {
				if f := c.flag(spelled); f != nil {
					names = append(names, "--"+f.Names()[0])
				}
			}
			for _, f := range c.flags {
				name := f.Names()[0]
				taken := len(c.verbs) == 1 || slices.Contains(v.also, name) || slices.ContainsFunc(usage.Flags, func(spelled string) bool { return c.flag(spelled).Names()[0] == name })
				if _, known := inputs()["--"+name]; taken && !known {
					t.Errorf("%s: --%s has no row in vocabulary.go, and would be refused", v.line, name)
				}
			}
			for _, name := range names {
				if input, known := inputs()[name]; known && input.Field != "" {
					if _, has := params.FieldByName(input.Field); !has {
						t.Errorf("%s: %s has no %s", v.line, params, input.Field)
					}
				}
			}
		}
	}
	for _, name := range append(slices.Clone(choosing), flagFollow) { // clove audit fills a filter
		if _, known := inputs()["--"+name]; !known {
			t.Errorf("clove audit: --%s has no row in vocabulary.go", name)
		}
	}
	if calls < 20 {
		t.Errorf("control: only %d verbs call a method", calls)
	}
}

// A table has a form for each that a tag names, and each heading once in the order that a verb gives.
func TestTablesHaveTheirForms(t *testing.T) {
	for _, c := range table() {
		for _, v := range c.verbs {
			act := reflect.ValueOf(v.act)
			if act.Kind() != reflect.Pointer || !act.Elem().FieldByName("show").IsNil() || !act.Elem().FieldByName("view").IsNil() || act.Elem().FieldByName("many").Bool() {
				continue
			}
			result := reflect.New(act.Elem().FieldByName("ask").Type().Out(0)).Elem().Interface()
			content := reflect.TypeOf(verbs.Content(result))
			if content.Kind() != reflect.Slice || content.Elem().Kind() != reflect.Struct {
				continue
			}
			one := reflect.MakeSlice(content, 1, 1).Interface()
			var order []string
			for i := range act.Elem().FieldByName("order").Len() {
				order = append(order, act.Elem().FieldByName("order").Index(i).String())
			}
			got, _ := verbs.Rows(one, forms(), order)
			usual, _ := verbs.Rows(one, forms(), nil)
			if a, b := slices.Sorted(slices.Values(got[0])), slices.Sorted(slices.Values(usual[0])); !slices.Equal(a, b) {
				t.Errorf("%s: the columns are %q, not %q", v.line, a, b)
			}
		}
	}
}

// clove --help shows each command under its task, at most twelve in one.
func TestHelpGroupsByTask(t *testing.T) {
	b := newBench(t)
	_, stdout, _ := b.clove("--help")
	_, rest, _ := strings.Cut(stdout, "COMMAND [flags]\n")
	rest, _, _ = strings.Cut(rest, "GLOBAL OPTIONS")
	shown := map[string][]string{}
	var order []string
	for line := range strings.Lines(rest) {
		switch heading, is := strings.CutSuffix(line, ":\n"); {
		case is:
			order = append(order, strings.ToLower(heading))
		case len(line) > 1:
			last := order[len(order)-1]
			shown[last] = append(shown[last], strings.Fields(line)[0])
		}
	}
	if !slices.Equal(order, tasks) {
		t.Errorf("%q", order)
	}
	for _, c := range table() {
		name := c.name()
		if c.task != "" && !slices.Contains(shown[c.task], name) {
			t.Errorf("%s is not shown under %q", name, c.task)
		}
	}
	for task, names := range shown {
		if len(names) > 12 {
			t.Errorf("%s has %d commands", task, len(names))
		}
	}
}

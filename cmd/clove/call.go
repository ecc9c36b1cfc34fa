package main

import (
	"cmp"
	"encoding/csv"
	"fmt"
	"reflect"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/client"
	"clove.run/clove/cmd/clove/verbs"
)

// by is an action that no row describes: a command line does what do says, with the parts of the program.
type by func(program, *cli.Context) error

func (do by) run(p program, l *line) error { return do(p, l.Context) }

// of is by for one of several commands that are methods of a type.
func of[T ~struct {
	*screen
	*access
}](do func(T, *cli.Context) error) by {
	return func(p program, c *cli.Context) error { return do(T(p), c) }
}

// prints is by for a command that only reads and prints.
func prints(do func(*screen, *cli.Context) error) by {
	return func(p program, c *cli.Context) error { return do(p.screen, c) }
}

// reaches is by for a command that prints nothing.
func reaches(do func(*access, *cli.Context) error) by {
	return func(p program, c *cli.Context) error { return do(p.access, c) }
}

// onCloved is by for a command that prints what cloved answers.
func onCloved(do func(*screen, *cli.Context, *client.Client) error) by {
	return func(p program, c *cli.Context) error {
		d, err := p.cloved(c)
		if err != nil {
			return err
		}
		defer d.Close()
		return do(p.screen, c, d)
	}
}

// call is an action that calls a method: the line fills its parameters, and its result is shown.
type call[P, R any] struct {
	ask   func(s *screen, l *line, d *client.Client, params P) (R, error)
	many  bool                                                                // it is called for each run that is named, which is then the line's argument
	fill  func(l *line, params *P) error                                      // what inputs cannot; may be nil
	alone func(a *access, l *line, missing error) (func(P) (R, error), error) // answers where no cloved runs, or fails; may be nil
	show  func(s *screen, l *line, result R) error                            // nil: as its content is
	view  func(result R) any                                                  // the list that a table shows of it; nil: its content
	order []string                                                            // of the columns; nil: that of the fields
	// For templates of --format: an item of view, and a hint that names its fields.
	headings any
	hint     string
}

// ask is a call of a method with one answer.
func ask[P, R any](row api.Row[P, R]) *call[P, R] {
	return &call[P, R]{ask: func(_ *screen, l *line, d *client.Client, params P) (R, error) {
		return client.Do(l.Context.Context, d, row, params)
	}}
}

// list is a call of a method that lists in parts.
func list[P interface{ WithAfter(K) P }, R interface{ Part() ([]T, K) }, T any, K comparable](row api.Row[P, R]) *call[P, []T] {
	return &call[P, []T]{ask: func(_ *screen, l *line, d *client.Client, params P) ([]T, error) {
		return client.Collect(client.All(l.Context.Context, d, row, params))
	}}
}

// stream is a call of a method whose notifications are shown one by one.
func stream[P, R, N any](row api.Row[P, R], note func(s *screen, l *line, note N) error) *call[P, R] {
	return &call[P, R]{show: nothing[R], ask: func(s *screen, l *line, d *client.Client, params P) (R, error) {
		return client.Each(l.Context.Context, d, row, params, func(n N) error { return note(s, l, n) })
	}}
}

// each is a call for every run that is named. Their names are printed as they succeed.
func each[P, R any](row api.Row[P, R]) *call[P, R] {
	a := ask(row)
	a.many, a.show = true, nothing[R]
	return a
}

func (a *call[P, R]) fills(fill func(l *line, params *P) error) *call[P, R] { a.fill = fill; return a }
func (a *call[P, R]) shows(show func(*screen, *line, R) error) *call[P, R]  { a.show = show; return a }
func (a *call[P, R]) columns(order ...string) *call[P, R]                   { a.order = order; return a }
func (a *call[P, R]) without(alone func(*access, *line, error) (func(P) (R, error), error)) *call[P, R] {
	a.alone = alone
	return a
}

// viewed shows a view of the result, whose fields are texts, in tables and by the templates of --format.
func viewed[P, R, V any](a *call[P, R], hint string, view func(result R) []V) *call[P, R] {
	a.view, a.headings, a.hint = func(result R) any { return view(result) }, verbs.Headings[V](), hint
	return a
}

// nothing shows nothing: the caller knows what it asked for.
func nothing[R any](*screen, *line, R) error { return nil }

// says shows a result as one line of text, or as JSON.
func says[R any](text func(l *line, result R) string) func(*screen, *line, R) error {
	return func(s *screen, l *line, result R) error { return s.answer(l.Context, result, text(l, result)) }
}

func (s *screen) answer(c *cli.Context, result any, text string) error {
	if c.Bool(flagJSON) {
		return s.printJSON(verbs.Content(result))
	}
	return s.printLines([]any{text})
}

func (a *call[P, R]) run(p program, l *line) error {
	var params P
	if err := verbs.Fill(&params, inputs(), l.given()); err != nil {
		return err
	}
	if a.fill != nil {
		if err := a.fill(l, &params); err != nil {
			return err
		}
	}
	format, err := formatOf(l.Context, a.headings, a.hint)
	if err != nil {
		return err
	}
	d, err := p.cloved(l.Context)
	if err == nil {
		defer d.Close()
		return a.perform(p, l, params, format, func(params P) (R, error) { return a.ask(p.screen, l, d, params) }, atOnce)
	}
	// A cloved that refuses or fails must not be bypassed.
	if a.alone == nil || agent.KindOf(err) != agent.KindNotFound {
		return err
	}
	answer, err := a.alone(p.access, l, err)
	if err != nil {
		return err
	}
	return a.perform(p, l, params, format, answer, 1)
}

// perform gets the answers and shows them. width is how many calls answer takes at once.
func (a *call[P, R]) perform(p program, l *line, params P, format *listTemplate, answer func(P) (R, error), width int) error {
	if !a.many {
		return a.one(p.screen, l, params, format, answer)
	}
	return p.each(l.Context, width, func(run string) error {
		params, one := params, *l
		one.args = []string{run}
		if err := verbs.Set(&params, "Run", one.args); err != nil {
			return err
		}
		return p.nearRun(l.Context, run, a.one(p.screen, &one, params, format, answer))
	})
}

// one shows one answer. With an error, the part that was done before it is shown, too.
func (a *call[P, R]) one(s *screen, l *line, params P, format *listTemplate, answer func(P) (R, error)) error {
	result, err := answer(params)
	switch {
	case err != nil && reflect.ValueOf(&result).Elem().IsZero():
		return err
	case a.show != nil:
		return cmp.Or(err, a.show(s, l, result))
	}
	return cmp.Or(err, a.display(s, l, result, format))
}

// display shows a result in the form that the flags choose.
func (a *call[P, R]) display(s *screen, l *line, result R, format *listTemplate) error {
	shown := verbs.Content(result)
	if a.view != nil {
		shown = a.view(result)
	}
	if format != nil {
		return format.print(s.out, verbs.Items(shown))
	}
	return s.printResult(l.Context, result, shown, a.order)
}

// printResult writes a result's content as JSON, or what is shown of it: a list as the table that the tags of its
// items describe, in this order of columns, texts one in a line, and anything else as JSON.
func (s *screen) printResult(c *cli.Context, result, shown any, order []string) error {
	switch of := reflect.TypeOf(shown); {
	case of == reflect.TypeFor[api.Nothing]():
		return nil
	case c.Bool(flagJSON) || of.Kind() != reflect.Slice:
		return s.printJSON(verbs.Content(result))
	}
	items := reflect.ValueOf(shown)
	if items.Len() == 0 && !c.Bool(flagQuiet) && !c.Bool(flagCSV) {
		s.none("there are none")
	}
	if items.Type().Elem().Kind() == reflect.String {
		return s.printLines(verbs.Items(shown))
	}
	of := forms()
	if c.Bool(flagCSV) {
		of = nil // programs read it: amounts are numbers
	}
	rows, cut := verbs.Rows(shown, of, order)
	switch {
	case c.Bool(flagQuiet):
		for i, row := range rows {
			rows[i] = row[:1]
		}
		return printTable(s.out, rows[1:])
	case c.Bool(flagCSV):
		for i, heading := range rows[0] {
			rows[0][i] = strings.ToLower(heading)
		}
		return csv.NewWriter(s.out).WriteAll(rows)
	}
	return s.printFitting(rows, cut...)
}

// printList is printResult for a list that no method returns.
func (s *screen) printList(c *cli.Context, list any) error { return s.printResult(c, list, list, nil) }

// printLines prints texts, one in a line.
func (s *screen) printLines(texts []any) error {
	for _, text := range texts {
		if _, err := fmt.Fprintln(s.out, printable(fmt.Sprint(text))); err != nil {
			return err
		}
	}
	return nil
}

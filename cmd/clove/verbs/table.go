package verbs

import (
	"cmp"
	"fmt"
	"reflect"
	"slices"
	"strings"
)

// Forms are the forms of cells, by the names that tags have for them. A form gets the field's value, or
// what it points to; one that a tag writes as "FORM of FIELD" gets an Of.
type Forms map[string]func(value any) string

// Of is a value whose form another field of the same item decides.
type Of struct{ Value, Of any }

// column is what the tag `col:"HEADING,form,cut"` of a field says. Fields with the same heading share a
// column, in which the last that is not empty is shown.
type column struct {
	heading string
	form    string // of Forms, or what is shown for true and for nil
	cut     bool   // shortened where the table does not fit the terminal
	field   []int
}

// columns are those of a type, embedded fields included.
func columns(of reflect.Type) (all []column) {
	for _, field := range reflect.VisibleFields(of) {
		tag, has := field.Tag.Lookup("col")
		if !has {
			continue
		}
		parts := append(strings.Split(tag, ","), "", "")
		all = append(all, column{parts[0], parts[1], parts[2] == "cut", field.Index})
	}
	return all
}

// Rows makes the table of a list, whose items are structs: the headings and a row for each item, and which
// columns may be shortened. order has the headings that are shown, in their order; nil: all, in the fields' order.
func Rows(list any, forms Forms, order []string) (rows [][]string, cut []int) {
	items := reflect.ValueOf(list)
	all := columns(items.Type().Elem())
	if order == nil {
		for _, c := range all {
			if !slices.Contains(order, c.heading) {
				order = append(order, c.heading)
			}
		}
	}
	rows = [][]string{slices.Clone(order)}
	for _, c := range all {
		if at := slices.Index(order, c.heading); c.cut && at >= 0 && !slices.Contains(cut, at) {
			cut = append(cut, at)
		}
	}
	for i := range items.Len() {
		row := make([]string, len(order))
		for _, c := range all {
			if at, text := slices.Index(order, c.heading), c.cell(items.Index(i), forms); at >= 0 && text != "" {
				row[at] = text
			}
		}
		rows = append(rows, row)
	}
	return rows, cut
}

// cell is the text of one field.
func (c column) cell(item reflect.Value, forms Forms) string {
	name, other, both := strings.Cut(c.form, " of ")
	value, form := item.FieldByIndex(c.field), forms[name]
	if value.Kind() == reflect.Pointer {
		if value.IsNil() && form == nil {
			return cmp.Or(c.form, "-")
		}
		if value.IsNil() {
			return "-"
		}
		value = value.Elem()
	}
	switch {
	case form != nil && both:
		return form(Of{value.Interface(), item.FieldByName(other).Interface()})
	case form != nil:
		return form(value.Interface())
	case value.Kind() == reflect.Slice:
		return strings.Join(value.Interface().([]string), ",")
	case value.Kind() != reflect.Bool:
		return fmt.Sprint(value.Interface())
	case value.Bool():
		return c.form
	}
	return ""
}

// Headings is an item of the view T, a struct of texts, in which each field has the heading of its column.
func Headings[T any]() (headings T) {
	item := reflect.ValueOf(&headings).Elem()
	for _, c := range columns(item.Type()) {
		item.FieldByIndex(c.field).SetString(c.heading)
	}
	return headings
}

// Content is what a result is about: of a struct with one field, besides the cursor Next, that field, and
// otherwise the result itself. A list is never nil.
func Content(result any) any {
	value := reflect.ValueOf(result)
	if value.Kind() == reflect.Struct {
		var fields []reflect.Value
		for i := range value.NumField() {
			if value.Type().Field(i).Name != "Next" {
				fields = append(fields, value.Field(i))
			}
		}
		if len(fields) == 1 {
			value = fields[0]
		}
	}
	if value.Kind() == reflect.Slice && value.IsNil() {
		value = reflect.MakeSlice(value.Type(), 0, 0)
	}
	return value.Interface()
}

// Items are the items of a list.
func Items(list any) []any {
	value := reflect.ValueOf(list)
	items := make([]any, value.Len())
	for i := range items {
		items[i] = value.Index(i).Interface()
	}
	return items
}

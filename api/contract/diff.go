package contract

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"clove.run/clove/api"
)

// Change is one difference between two contracts.
type Change struct {
	Subject  string   `json:"subject" col:"OF"` // the name of a method or a notification, "error WORD" or "error data"
	What     string   `json:"what" col:"WHAT"`  // what is different, as a sentence without its subject
	Breaking bool     `json:"breaking" col:"CHANGE,breaking"`
	Tier     api.Tier `json:"tier,omitempty" col:"TIER"` // of the method before; absent: it was none
}

// Diff returns what is different in now, in the order of the names: errors, methods,
// notifications.
func Diff(old, now Contract) []Change {
	d := &differ{}
	d.errors(old.Errors, now.Errors)
	d.subject = "error data"
	d.fields("field", false, old.ErrorData, now.ErrorData)
	each(d, old.Methods, now.Methods, func(m Method) string { return m.Name }, d.method)
	each(d, old.Notifications, now.Notifications, func(n Notification) string { return n.Name }, d.notification)
	return d.changes
}

// differ collects the changes of one subject after the other.
type differ struct {
	changes []Change
	subject string
	tier    api.Tier
}

func (d *differ) add(breaking bool, format string, values ...any) {
	d.changes = append(d.changes, Change{Subject: d.subject, What: fmt.Sprintf(format, values...), Breaking: breaking, Tier: d.tier})
}

func (d *differ) errors(old, now map[string]api.Code) {
	for _, word := range names(old, now) {
		d.subject = "error " + word
		was, had := old[word]
		is, has := now[word]
		switch {
		case !has:
			d.add(true, "is gone")
		case !had:
			d.add(false, "is new")
		case was != is:
			d.add(true, "has the code %d, and had %d", is, was)
		}
	}
}

// each compares the rows of a table by their names.
func each[R any](d *differ, old, now []R, name func(R) string, compare func(was, is R)) {
	byName := func(rows []R) map[string]R {
		all := map[string]R{}
		for _, row := range rows {
			all[name(row)] = row
		}
		return all
	}
	before, after := byName(old), byName(now)
	for _, subject := range names(before, after) {
		d.subject, d.tier = subject, ""
		was, had := before[subject]
		is, has := after[subject]
		if m, isMethod := any(was).(Method); isMethod {
			d.tier = m.Tier
		}
		switch {
		case !has:
			d.add(true, "is gone")
		case !had:
			d.add(false, "is new")
		default:
			compare(was, is)
		}
	}
}

func (d *differ) method(was, is Method) {
	if was.Tier != is.Tier {
		d.add(is.Tier != api.Stable, "is %s, and was %s", is.Tier, was.Tier)
	}
	if was.Shape != is.Shape {
		d.add(true, "is a %s, and was a %s", is.Shape, was.Shape)
	}
	if was.Notifies != is.Notifies {
		d.add(true, "notifies with %q, and did with %q", is.Notifies, was.Notifies)
	}
	for _, caller := range missing(was.Callers, is.Callers) {
		d.add(true, "is not for %s any more", caller)
	}
	for _, caller := range missing(is.Callers, was.Callers) {
		d.add(false, "is for %s too", caller)
	}
	for _, word := range missing(is.Errors, was.Errors) {
		d.add(false, "can give the error %s", word)
	}
	for _, word := range missing(was.Errors, is.Errors) {
		d.add(false, "gives the error %s no more", word)
	}
	d.fields("parameter", true, was.Params, is.Params)
	d.fields("result", false, was.Result, is.Result)
}

func (d *differ) notification(was, is Notification) {
	if was.From != is.From || was.ForAgent != is.ForAgent {
		d.add(true, "has another sender, or another receiver")
	}
	d.fields("parameter", is.From == api.FromCaller, was.Params, is.Params)
}

// fields compares what a caller writes or reads. Of an object that came or went, only the
// object is named.
func (d *differ) fields(side string, written bool, before, after Fields) {
	old, now := before.values(), after.values()
	for _, path := range names(old, now) {
		was, had := old[path]
		is, has := now[path]
		switch {
		case !has && within(now, path):
			d.add(true, "%s %s is gone", side, path)
		case !had && within(old, path) && written && !is.optional:
			d.add(true, "%s %s is new, and required", side, path)
		case !had && within(old, path):
			d.add(false, "%s %s is new", side, path)
		case !had || !has:
		case was.kind != is.kind:
			d.add(true, "%s %s is %s, and was %s", side, path, kindName(is), kindName(was))
		case was.optional && !is.optional:
			d.add(written, "%s %s is required", side, path)
		case !was.optional && is.optional:
			d.add(!written, "%s %s may be absent", side, path)
		}
	}
}

// within reports whether the object that a path is in is there.
func within(values map[string]value, path string) bool {
	at := strings.LastIndexByte(path, '.')
	if at < 0 {
		return true
	}
	v, found := values[path[:at]]
	return found && v.kind == ""
}

func kindName(v value) string {
	if v.kind == "" {
		return "an object"
	}
	return v.kind
}

// names are the keys of both, sorted.
func names[V any](a, b map[string]V) []string {
	both := maps.Clone(a)
	if both == nil {
		both = map[string]V{}
	}
	maps.Copy(both, b)
	return slices.Sorted(maps.Keys(both))
}

// missing are the elements of all that some lacks.
func missing(all, some []string) (left []string) {
	for _, one := range all {
		if !slices.Contains(some, one) {
			left = append(left, one)
		}
	}
	return left
}

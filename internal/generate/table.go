package main

import (
	"cmp"
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
)

// table is the API as the templates have it.
type table struct {
	Agent, User []method
	comments    comments
}

// method is a row as one side calls it.
type method struct {
	api.Method
	Noun, Verb string
	Params     []field
	Note       reflect.Type // of its notifications; nil: it has none
	List       *field       // of a method that answers in parts: the field with the items
}

// field is one field of an object in JSON.
type field struct {
	Name     string
	Type     reflect.Type
	Optional bool
	Doc      string
}

// Item is the type of a list's items.
func (f field) Item() reflect.Type { return f.Type.Elem() }

// own are the nouns of clove's other programs, and request.cancel, which clients send themselves.
var own = []string{"kernel", "network", "container", "request"}

func newTable(root string) (*table, error) {
	all, err := readComments(root)
	t := &table{comments: all}
	for _, m := range methods.All() {
		if m.ForAgents() && m.Name != agents.AgentListen.Name { // listening is written by hand
			t.Agent = append(t.Agent, t.methodOf(m, true))
		}
		if noun, _, _ := strings.Cut(m.Name, "."); m.Access != api.AccessSelf && !slices.Contains(own, noun) {
			t.User = append(t.User, t.methodOf(m, false))
		}
	}
	return t, cmp.Or(err, t.checkNames())
}

// methodOf leaves out the run that the parameters of an agent's call name: an agent calls for
// itself. Its client makes a key where the caller names none.
func (t *table) methodOf(m api.Method, forAgent bool) method {
	noun, verb, _ := strings.Cut(m.Name, ".")
	made := method{Method: m, Noun: noun, Verb: verb, List: t.partsOf(reflect.TypeOf(m.Result))}
	for _, f := range t.fieldsOf(reflect.TypeOf(m.Params)) {
		if forAgent && f.Name == "key" {
			f.Doc += "; a random one by default"
		}
		if !forAgent || f.Name != "run" {
			made.Params = append(made.Params, f)
		}
	}
	for _, n := range api.Notifications {
		if n.Name == m.Notes {
			made.Note = reflect.TypeOf(n.Params)
		}
	}
	return made
}

// partsOf is the list that an answer has a part of; nil: it has no part of anything.
func (t *table) partsOf(result reflect.Type) *field {
	if _, paged := result.MethodByName("Part"); !paged {
		return nil
	}
	fields := t.fieldsOf(result)
	if i := slices.IndexFunc(fields, func(f field) bool { return kindOf(f.Type) == kindList }); i >= 0 {
		return &fields[i]
	}
	return nil
}

// Keyed reports whether the call has a key by which its repetition is recognised.
func (m method) Keyed() bool { return m.has("key") }

func (m method) has(name string) bool {
	return slices.ContainsFunc(m.Params, func(f field) bool { return f.Name == name })
}

// PartParams are the parameters without the cursor, of a call for all parts.
func (m method) PartParams() []field {
	return slices.DeleteFunc(slices.Clone(m.Params), func(f field) bool { return f.Name == "after" })
}

// fieldsOf returns the fields that an object of the type has in JSON.
func (t *table) fieldsOf(of reflect.Type) []field {
	var all []field
	for i := range of.NumField() {
		f := of.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			all = append(all, t.fieldsOf(f.Type)...)
			continue
		}
		all = append(all, field{name, f.Type, strings.Contains(options, "omit"), t.comments.field(of, f)})
	}
	return all
}

// kind says what the values of a type are in JSON.
type kind string

// The kinds, with their names in docs/api.md.
const (
	kindAny     kind = "any"
	kindBool    kind = "bool"
	kindString  kind = "string"
	kindInteger kind = "number"
	kindNumber  kind = "number with a fraction"
	kindTime    kind = "time"
	kindAddress kind = "address"
	kindBytes   kind = "base64"
	kindPointer kind = "pointer"
	kindList    kind = "list"
	kindMap     kind = "object of"
	kindObject  kind = "object"
	kindNothing kind = "none"
)

var kinds = map[reflect.Kind]kind{
	reflect.Interface: kindAny, reflect.Bool: kindBool, reflect.String: kindString, reflect.Float64: kindNumber,
	reflect.Pointer: kindPointer, reflect.Slice: kindList, reflect.Map: kindMap, reflect.Struct: kindObject,
}

func kindOf(t reflect.Type) kind {
	switch {
	case t == nil || t == reflect.TypeFor[json.RawMessage]():
		return kindAny
	case t == reflect.TypeFor[time.Time]():
		return kindTime
	case t.PkgPath() == "net/netip":
		return kindAddress
	case t == reflect.TypeFor[api.Nothing]():
		return kindNothing
	case t.Kind() == reflect.Slice && t.Elem().Kind() == reflect.Uint8:
		return kindBytes
	}
	return cmp.Or(kinds[t.Kind()], kindInteger)
}

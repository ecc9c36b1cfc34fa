package main

import (
	"fmt"
	"path"
	"reflect"
	"slices"
)

// objects adds the types of objects that values of a type have to a list, each behind those in it.
func (t *table) objects(list []reflect.Type, of reflect.Type) []reflect.Type {
	switch kindOf(of) {
	case kindPointer, kindList, kindMap:
		return t.objects(list, of.Elem())
	case kindObject:
		if slices.Contains(list, of) {
			return list
		}
		for _, f := range t.fieldsOf(of) {
			list = t.objects(list, f.Type)
		}
		return append(list, of)
	}
	return list
}

// objectsOf are the types of what methods return and notify, and inside of their parameters.
func (t *table) objectsOf(all []method) []reflect.Type {
	var list []reflect.Type
	for _, m := range all {
		list = t.objects(t.objects(list, reflect.TypeOf(m.Result)), m.Note)
	}
	for _, m := range all {
		for _, p := range m.Params {
			list = t.objects(list, p.Type)
		}
	}
	return list
}

// AgentTypes are the types of the agent's side, with those of its notifications.
func (t *table) AgentTypes() []reflect.Type {
	list := t.objectsOf(t.Agent)
	for _, n := range t.Notes() {
		list = t.objects(list, reflect.TypeOf(n.Params))
	}
	return list
}

// UserTypes are the types that only the user's side has.
func (t *table) UserTypes() []reflect.Type {
	ofAgents := t.AgentTypes()
	return slices.DeleteFunc(t.objectsOf(t.User), func(of reflect.Type) bool { return slices.Contains(ofAgents, of) })
}

// Inputs are the types of the parameters of methods, each as a whole.
func (t *table) Inputs() []reflect.Type {
	var list []reflect.Type
	for _, m := range slices.Concat(t.Agent, t.User) {
		if of := reflect.TypeOf(m.Method.Params); kindOf(of) == kindObject && !slices.Contains(list, of) {
			list = append(list, of)
		}
	}
	return list
}

// checkNames: a client has one type for each name, and its comment.
func (t *table) checkNames() error {
	named := map[string]reflect.Type{}
	for _, found := range slices.Concat(t.Inputs(), t.AgentTypes(), t.UserTypes()) {
		if other := named[found.Name()]; other != nil && other != found {
			return fmt.Errorf("%s and %s have the same name in the clients", found, other)
		}
		if folder := path.Base(found.PkgPath()); !slices.Contains(commented, folder) {
			return fmt.Errorf("%s: the comments of package %s are not read", found, folder)
		}
		named[found.Name()] = found
	}
	return nil
}

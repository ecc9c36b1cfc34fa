package main

import (
	"reflect"
	"strings"

	"clove.run/clove/api"
)

var who = map[api.Access]string{
	api.AccessMember: "everybody who may connect",
	api.AccessOwner:  "root, and the owner of the run",
	api.AccessRoot:   "root",
	api.AccessAgent:  "root, the owner of the run, and the run's agent over its own socket",
	api.AccessSelf:   "the run's agent over its own socket",
}

func words(codes []api.Code) string {
	var list []string
	for _, code := range codes {
		for _, row := range api.Codes {
			if row.Code == code {
				list = append(list, row.Word)
			}
		}
	}
	return strings.Join(list, ", ")
}

// typeName is a type's name for readers; types outside of the API belong to package agent.
func typeName(t reflect.Type) string {
	switch k := kindOf(t); k {
	case kindPointer:
		return typeName(t.Elem())
	case kindList:
		return "list of " + typeName(t.Elem())
	case kindMap:
		return "object of " + typeName(t.Elem())
	case kindObject:
		return strings.TrimPrefix(t.String(), "api.")
	case kindNumber:
		return string(kindInteger)
	default:
		return string(k)
	}
}

package policies

import (
	"embed"
	"reflect"
	"slices"

	"clove.run/clove/internal/document"
)

// Schema is the JSON Schema of documents.
func Schema() []byte {
	return document.Schema("https://clove.run/schema/policy-1.json", "clove policy, version 1", reflect.Zero(form()).Interface())
}

//go:embed levels/*.yaml
var levelFiles embed.FS

// Levels are the names of the built-in levels, from the widest to the narrowest.
var Levels = []string{"unrestricted", StandardName, "sandboxed", "readonly", "minimal"}

// Level returns the text of a built-in level; ok is false if there is none of that name.
func Level(name string) (text []byte, ok bool) {
	if !slices.Contains(Levels, name) {
		return nil, false
	}
	text, err := levelFiles.ReadFile("levels/" + name + ".yaml")
	if err != nil {
		panic(err) // embedded with the program
	}
	return text, true
}

package policies

import (
	"embed"
	"reflect"
	"slices"
	"strings"

	"clove.run/clove/internal/document"
)

// Schema is the JSON Schema of documents.
func Schema() []byte {
	return document.Schema("https://clove.run/schema/policy-1.json", "clove policy, version 1", reflect.Zero(form()).Interface())
}

//go:embed levels/*.yaml
var levelFiles embed.FS

//go:embed agents/*.yaml
var agentFiles embed.FS

// Agents are the names of the manifests that are shipped with clove.
func Agents() (names []string) {
	entries, _ := agentFiles.ReadDir("agents") // embedded with the program, in the order of names
	for _, e := range entries {
		names = append(names, strings.TrimSuffix(e.Name(), ".yaml"))
	}
	return names
}

// Agent returns the text of a manifest that is shipped with clove; ok is false if there is none of that name.
func Agent(name string) (text []byte, ok bool) {
	text, err := agentFiles.ReadFile("agents/" + name + ".yaml")
	return text, err == nil
}

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

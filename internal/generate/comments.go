package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
)

// comments are those of types and of their fields, by names such as api.Grant and
// api.Grant.ID. The table's types have them in their source alone. With inJSON in front, the name
// of a field has that in JSON.
type comments map[string]string

const inJSON = "json "

// commented are the packages whose types the table names.
var commented = []string{"api", "agent", "secrets", "tools"}

func readComments(root string) (comments, error) {
	all := comments{}
	for _, folder := range commented {
		files, err := filepath.Glob(filepath.Join(root, folder, "*.go"))
		if err != nil || len(files) == 0 {
			return nil, fmt.Errorf("there is no source of package %s: %w", folder, err)
		}
		for _, file := range files {
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				return nil, err
			}
			all.add(folder, tree)
		}
	}
	return all, nil
}

func (all comments) add(folder string, tree *ast.File) {
	for _, declaration := range tree.Decls {
		types, ok := declaration.(*ast.GenDecl)
		if !ok || types.Tok != token.TYPE {
			continue
		}
		for _, spec := range types.Specs {
			named := spec.(*ast.TypeSpec)
			name := folder + "." + named.Name.Name
			all[name] = oneLine(types.Doc.Text())
			structure, ok := named.Type.(*ast.StructType)
			if !ok {
				continue
			}
			for _, field := range structure.Fields.List {
				for _, id := range field.Names {
					all[name+"."+id.Name] = oneLine(field.Doc.Text() + " " + field.Comment.Text())
					all[inJSON+id.Name] = jsonName(field)
				}
			}
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// verb matches the verb that follows the name at the beginning of a comment.
var verb = regexp.MustCompile(`^(is|are) `)

// of returns the comment of a type without the name that Go's comments begin with.
func (all comments) of(t reflect.Type) string {
	text := strings.TrimPrefix(all[t.String()], t.Name()+" ")
	return capital(verb.ReplaceAllString(text, ""))
}

// jsonName is the name in a field's tag; empty: it has none.
func jsonName(f *ast.Field) string {
	if f.Tag == nil {
		return ""
	}
	name, _, _ := strings.Cut(reflect.StructTag(strings.Trim(f.Tag.Value, "`")).Get("json"), ",")
	return name
}

// goName matches a word inside of a sentence that may be a Go field's name.
var goName = regexp.MustCompile(`[^.:] [A-Z][a-z]+[A-Za-z]*\b`)

// field returns the comment of a field without the name that it begins with. Where it names
// another field, it gets that one's name in JSON.
func (all comments) field(t reflect.Type, f reflect.StructField) string {
	text := strings.TrimPrefix(all[t.String()+"."+f.Name], f.Name+" ")
	return goName.ReplaceAllStringFunc(verb.ReplaceAllString(text, ""), func(words string) string {
		if name := all[inJSON+words[2:]]; name != "" {
			return words[:2] + name
		}
		return words
	})
}

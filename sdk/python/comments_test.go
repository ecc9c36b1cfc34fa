package python

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"
)

// comments are those of types and of their fields, by names such as api.Grant and
// api.Grant.ID. The table's types have them in their source alone.
type comments map[string]string

// readComments parses the packages whose types the table names.
func readComments(t *testing.T) comments {
	t.Helper()
	all := comments{}
	for _, folder := range []string{"api", "agent"} {
		files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
		if err != nil || len(files) == 0 {
			t.Fatalf("no source of package %s: %v", folder, err)
		}
		for _, file := range files {
			tree, err := parser.ParseFile(token.NewFileSet(), file, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			all.add(folder, tree)
		}
	}
	return all
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
				}
			}
		}
	}
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// of returns the comment of a type without the name that Go's comments begin with.
func (all comments) of(t reflect.Type) string {
	text := strings.TrimPrefix(all[t.String()], t.Name()+" ")
	return capital(strings.TrimPrefix(text, "is "))
}

// goName matches a word that may be a Go field's name inside a comment.
var goName = regexp.MustCompile(` [A-Z][a-z]+\b`)

// field returns the comment of a field. Where it names another field, it gets that one's
// name in JSON.
func (all comments) field(t reflect.Type, f reflect.StructField) string {
	return goName.ReplaceAllStringFunc(all[t.String()+"."+f.Name], func(word string) string {
		for name := range all {
			if strings.HasSuffix(name, "."+word[1:]) && strings.Count(name, ".") == 2 {
				return strings.ToLower(word)
			}
		}
		return word
	})
}

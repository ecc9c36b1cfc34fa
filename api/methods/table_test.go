package methods

import (
	"go/ast"
	"go/parser"
	"go/token"
	"path/filepath"
	"reflect"
	"slices"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range All() {
		if seen[m.Name] || m.Name == "" || m.Doc == "" || m.Params == nil || m.Result == nil {
			t.Errorf("%s: twice, or not complete", m.Name)
		}
		seen[m.Name] = true
		if m.Tier != api.Stable && m.Tier != api.Experimental {
			t.Errorf("%s has the tier %q", m.Name, m.Tier)
		}
		callers := m.Access.Callers()
		if len(callers) == 0 || m.ForAgents() != (callers[len(callers)-1] == "agent") {
			t.Errorf("%s is for %q", m.Name, callers)
		}
		if _, names := m.Params.(interface{ AboutRun() string }); !names && (m.Access == api.AccessOwner || m.Access == api.AccessAgent) {
			t.Errorf("%s: it is for owners and names no run", m.Name)
		}
		if m.Shape == api.ShapeStream && !slices.ContainsFunc(api.Notifications, func(n api.Notification) bool { return n.Name == m.Notes }) {
			t.Errorf("%s: it streams nothing that is known", m.Name)
		}
		for _, code := range m.Errors {
			if api.Failure(code, "", "").Data.Word == "" {
				t.Errorf("%s: error %d is not of the set", m.Name, code)
			}
		}
	}
}

// A method that lists in parts can be continued by package client.
func TestListsInPartsHaveACursor(t *testing.T) {
	t.Parallel()
	found := 0
	for _, m := range All() {
		params, result := reflect.TypeOf(m.Params), reflect.TypeOf(m.Result)
		if result.Kind() != reflect.Struct {
			continue
		}
		if _, inParts := result.FieldByName("Next"); !inParts {
			continue
		}
		found++
		with, continues := params.MethodByName("WithAfter")
		part, divided := result.MethodByName("Part")
		if !continues || !divided || with.Type.Out(0) != params || with.Type.In(1) != part.Type.Out(1) {
			t.Errorf("%s: its parameters need WithAfter, its result Part, with one type of cursor", m.Name)
		}
	}
	if found == 0 {
		t.Error("no list was found")
	}
}

// rowsOf returns the names of the variables of a folder that are rows.
func rowsOf(t *testing.T, folder string) (names []string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil || len(files) == 0 {
		t.Fatalf("no source in %s: %v", folder, err)
	}
	for _, file := range files {
		tree, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		if err != nil {
			t.Fatal(err)
		}
		ast.Inspect(tree, func(n ast.Node) bool {
			spec, is := n.(*ast.ValueSpec)
			if !is || len(spec.Values) != 1 {
				return true
			}
			if value, is := spec.Values[0].(*ast.CompositeLit); is {
				if _, generic := value.Type.(*ast.IndexListExpr); generic {
					names = append(names, spec.Names[0].Name)
				}
			}
			return true
		})
	}
	return names
}

// Each variable with a row is in the list of its package: the lists have as many rows as there
// are variables, and none twice.
func TestEveryRowIsInTheTable(t *testing.T) {
	t.Parallel()
	own, ofAgents := rowsOf(t, "."), rowsOf(t, "../agents")
	if len(ofAgents) != len(agents.All()) || len(own)+len(ofAgents) != len(All()) || len(own) == 0 {
		t.Errorf("%d and %d variables, %d and %d rows", len(own), len(ofAgents), len(All()), len(agents.All()))
	}
}

// Agents call what the rows of package agents say, and nothing else. Both lists have one order.
func TestAgentsRowsAreThoseForAgents(t *testing.T) {
	t.Parallel()
	var names, want []string
	for _, m := range All() {
		if m.ForAgents() {
			want = append(want, m.Name)
		}
	}
	for _, m := range agents.All() {
		names = append(names, m.Name)
		if row, known := Find(m.Name); !known || !reflect.DeepEqual(row.Params, m.Params) {
			t.Errorf("%s has %T, the table %T", m.Name, m.Params, row.Params)
		}
	}
	if !slices.Equal(names, want) {
		t.Errorf("package agents has %v, want %v", names, want)
	}
}

package api

import (
	"flag"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"
)

var update = flag.Bool("update", false, "write the golden file and docs/api.md anew")

const (
	golden   = "testdata/contract.golden"
	document = "../docs/api.md"
)

// TestContractIsGolden: nothing that callers rely on disappears or changes its meaning within
// a version. Additions need only -update.
func TestContractIsGolden(t *testing.T) {
	t.Parallel()
	got := contract()
	if *update {
		write(t, golden, strings.Join(got, "\n")+"\n")
	}
	text, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Split(strings.TrimSpace(string(text)), "\n")
	for _, line := range want {
		if !slices.Contains(got, line) {
			t.Errorf("the contract has lost %q", line)
		}
	}
	for _, line := range got {
		if !slices.Contains(want, line) {
			t.Errorf("the contract has gained %q: write it down with -update", line)
		}
	}
}

// contract returns one line for each thing that a caller may rely on.
func contract() []string {
	lines := []string{fmt.Sprintf("version %d", Version)}
	for _, row := range Codes {
		lines = append(lines, fmt.Sprintf("error %d %s", row.Code, row.Word))
	}
	for _, m := range Methods {
		lines = append(lines, fmt.Sprintf("method %s %s access=%s notes=%s errors=%v", m.Name, m.Shape, m.Access, m.Notes, m.Errors))
		lines = append(lines, fields("params "+m.Name, reflect.TypeOf(m.Params))...)
		lines = append(lines, fields("result "+m.Name, reflect.TypeOf(m.Result))...)
	}
	for _, all := range []map[string]any{notes, agentNotes} {
		for name, note := range all {
			lines = append(lines, "note "+name)
			lines = append(lines, fields("note "+name, reflect.TypeOf(note))...)
		}
	}
	slices.Sort(lines)
	return lines
}

// notes are the notifications of streams and sessions.
var notes = map[string]any{NoteLogLine: LogNote{}, NoteChange: ChangeNote{}, NoteEvent: EventNote{}, NoteOutput: SessionOutput{}, NoteInput: SessionInput{},
	NoteResize: SessionSize{}, NoteCloseInput: Nothing{}, NoteDetach: Nothing{},
	NoteTaken: Nothing{}, NoteStanding: StandingNote{}, NoteAuditRecord: AuditRecordNote{}, NoteSignal: SessionSignal{}, NoteCloseOutput: SessionStream{}}

// agentNotes are the notifications of an agent's own socket.
var agentNotes = map[string]any{NoteBudgetWarning: BudgetNote{}, NoteBudgetPause: BudgetNote{}, NoteGrantsChanged: Nothing{}, NoteLost: LostNote{}}

// fields lists every field below a type as path and kind.
func fields(prefix string, t reflect.Type) []string {
	switch {
	case t.Kind() == reflect.Pointer:
		return fields(prefix, t.Elem())
	case t.Kind() == reflect.Struct && t != reflect.TypeFor[time.Time]() && t.PkgPath() != "net/netip":
		var lines []string
		for i := range t.NumField() {
			f := t.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if f.Anonymous && name == "" {
				lines = append(lines, fields(prefix, f.Type)...)
				continue
			}
			lines = append(lines, fields(prefix+"."+name, f.Type)...)
		}
		return lines
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return fields(prefix+"[]", t.Elem())
	case t.Kind() == reflect.Map:
		return fields(prefix+"{}", t.Elem())
	}
	return []string{prefix + " " + kindOf(t)}
}

// kindOf returns a type's name in JSON.
func kindOf(t reflect.Type) string {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return "time"
	case t.PkgPath() == "net/netip":
		return "address"
	case t.Kind() == reflect.Slice && t.Name() == "RawMessage" || t.Kind() == reflect.Interface:
		return "any"
	case t.Kind() == reflect.Slice:
		return "base64"
	case t.Kind() == reflect.Bool:
		return "bool"
	case t.Kind() == reflect.String:
		return "string"
	}
	return "number"
}

func write(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// TestEveryFieldHasAName: a field without one would have Go's name.
func TestEveryFieldHasAName(t *testing.T) {
	t.Parallel()
	for _, line := range contract() {
		if strings.Contains(line, ".. ") || strings.Contains(line, "..") || strings.HasSuffix(strings.Fields(line)[len(strings.Fields(line))-2], ".") {
			t.Errorf("%q has a field without a name", line)
		}
	}
}

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, m := range Methods {
		if seen[m.Name] || m.Doc == "" || m.Params == nil || m.Result == nil {
			t.Errorf("%s: twice, or not complete", m.Name)
		}
		seen[m.Name] = true
		if _, has := reflect.TypeOf(m.Params).FieldByName("RunParams"); m.Access == AccessOwner && !has && reflect.TypeOf(m.Params) != reflect.TypeFor[RunParams]() {
			t.Errorf("%s: it is for owners and names no run", m.Name)
		}
		if (m.Shape == ShapeStream) && notes[m.Notes] == nil {
			t.Errorf("%s: it streams nothing that is known", m.Name)
		}
		for _, code := range m.Errors {
			if _, known := rowOf(code); !known {
				t.Errorf("%s: error %d is not of the set", m.Name, code)
			}
		}
	}
}

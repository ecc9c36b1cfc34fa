package contract

import (
	"fmt"
	"os"
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
)

const document = "../../docs/api.md"

// TestDocumentIsCurrent keeps docs/api.md equal to the table.
func TestDocumentIsCurrent(t *testing.T) {
	t.Parallel()
	want := drawDocument()
	if *update {
		write(t, document, want)
	}
	got, err := os.ReadFile(document)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s shows another table: go test ./api/contract -update", document)
	}
}

const introduction = `# The API of cloved

This page is made from the table in ` + "`api/methods.go`" + ` by ` + "`go test ./api/contract -update`" + `; a test keeps it current.

JSON-RPC 2.0 over the Unix socket ` + "`" + api.DefaultSocket + "`" + `: one object or one batch a line, in both directions.

    $ printf '{"jsonrpc":"2.0","id":1,"method":"run.list"}\n' | sudo nc -UN /run/clove/clove.sock

Batches, notifications (requests without an id) and requests in any order work as the standard says. clove adds:

- **Caller.** The kernel reports who is at your end of the socket. Root sees and may do everything. A member of cloved's group
  sees and controls the runs that it started; to it no others exist. Nobody else may connect.
- **Agents** have a socket of their own, with the methods that say so under "Who" ([kernel.md](kernel.md)).
- **Names of runs** are unique for each user. Where a method takes a run, a name means the caller's own run, and UID/NAME a run of the user with that number, which
  only root sees. An id, or the beginning of exactly one, works for every caller who sees the run.
- **Streams** send notifications that carry the request's id, then the response. ` + "`request.cancel`" + ` or closing the connection ends a stream.
- **Sessions** are streams in both directions. A session has a connection to itself: its request is the first there.
  The caller sends ` + "`session.input`" + `, ` + "`session.close_input`" + `, ` + "`session.resize`" + ` and ` + "`session.detach`" + `; cloved sends ` + "`session.output`" + `.
- **A run in the foreground** (` + "`foreground`" + ` in its spec) starts at once or fails with ` + "`busy`" + `. It waits 15 s for its session, which is ` + "`run.attach`" + ` with ` + "`foreground`" + `, and ends with it.
  No output is lost in this session: if the caller reads slowly, the agent waits. cloved may be restarted during the session. The caller also sends
  ` + "`session.signal`" + ` with HUP, INT, QUIT, TERM, USR1 or USR2 (the third INT kills the agent), and ` + "`session.close_output`" + `. Before the first ` + "`session.taken`" + `
  it sends at most 4 inputs, ` + "`session.close_input`" + ` among them, and then one more for each.
- **Limits** of a connection: a line of 64 KiB, with ` + "`run.start`" + ` or ` + "`run.exec`" + ` alone 1 MiB; 64 levels of nesting; 256 requests in a batch; 64 lines being answered (the next
  one waits). No object may have a key twice. cloved takes 1024 connections, 128 of each user; root's are not counted. It holds at most 64 MiB for the calls of
  each user, 256 MiB for those of all users together, 128 MiB for root's, and 32 MiB for those on one connection: requests that are being answered, 16 KiB and their text
  each, and answers that are not read (` + "`busy`" + ` beyond). On one connection the next answer is computed when the one before it was read. The answers to one batch have at
  most 1 MiB together (` + "`too-large`" + ` beyond).
- **Lists come in parts**: if ` + "`run.list`" + ` returns ` + "`next`" + `, send the same request with that value as ` + "`after`" + ` for the next part. A part has up to 252 KiB of text, root's up to 1 MiB, or one run. A run's
  spec, its command counted three times, has at most 7 MiB of JSON, a user's 256 KiB.
- **Continue where you were**: events are numbered for ever. ` + "`event.follow`" + ` with the number of the last one that you saw misses
  nothing, even if cloved was restarted in between; if too many events have happened, a notification says ` + "`gap`" + `. The lines of a
  log are numbered too: ` + "`run.logs`" + ` with ` + "`after`" + ` and ` + "`after_offset`" + `, the number and offset of your last line, returns later lines only. If some of
  those are gone, one line says how many and of how many bytes (` + "`lost_lines`" + `, ` + "`lost_bytes`" + `); without ` + "`after_offset`" + ` the latter may be absent.

- **Tiers.** A stable method keeps what callers rely on for as long as the contract's version stays: its name, callers, parameters, results and errors. New optional
  parameters and new fields of results may come, so ignore fields that you do not know. An experimental method may change in each release; CHANGELOG.md says how.
  ` + "`clove api list`" + ` shows all methods of your clove, and ` + "`clove api diff`" + ` what is different in it, and what of that is breaking.

The Go client is package ` + "`client`" + `.

`

func drawDocument() string {
	var b strings.Builder
	b.WriteString(introduction)
	b.WriteString("## Errors\n\nAn error has a code, a message for people, and in `data` the code's `word`, the `step` that failed, the `rule` that decided and a `hint`. If a start failed, `data` also has the run's `record`.\n\n")
	b.WriteString("| code | word | meaning |\n|---|---|---|\n")
	for _, row := range api.Codes {
		fmt.Fprintf(&b, "| %d | %s | %s |\n", row.Code, row.Word, row.Meaning)
	}
	fmt.Fprintf(&b, "\nEvery method can give %s.\n\n## Methods\n\n", words(api.CommonErrors))
	for _, m := range methods.All() {
		fmt.Fprintf(&b, "### %s\n\n%s\n\n", m.Name, m.Doc)
		fmt.Fprintf(&b, "Tier: %s. Shape: %s. Who: %s.", m.Tier, m.Shape, who[m.Access])
		if m.Notes != "" {
			fmt.Fprintf(&b, " Notifies: %s.", m.Notes)
		}
		if len(m.Errors) > 0 {
			fmt.Fprintf(&b, " Errors: %s.", words(m.Errors))
		}
		b.WriteString("\n\n")
		shape(&b, "Parameters", m.Params)
		shape(&b, "Result", m.Result)
	}
	b.WriteString("## Notifications\n\n")
	notifications(&b, false)
	b.WriteString("## Notifications of an agent\n\nAn agent gets these on the connection on which it called `agent.listen`.\n\n")
	notifications(&b, true)
	return strings.TrimRight(b.String(), "\n") + "\n"
}

func notifications(b *strings.Builder, forAgent bool) {
	for _, n := range api.Notifications {
		if n.ForAgent == forAgent {
			fmt.Fprintf(b, "### %s\n\n", n.Name)
			shape(b, "Parameters", n.Params)
		}
	}
}

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

// shape lists the fields at the top level of an object; deeper ones are in versions and in
// package agent.
func shape(b *strings.Builder, title string, value any) {
	if kindOf(reflect.TypeOf(value)) == "any" {
		fmt.Fprintf(b, "%s: any.\n\n", title)
		return
	}
	var rows []string
	topFields(reflect.TypeOf(value), func(name string, t reflect.Type, optional bool) {
		need := ""
		if optional {
			need = ", may be absent"
		}
		rows = append(rows, fmt.Sprintf("- %s: %s%s", name, typeName(t), need))
	})
	if len(rows) == 0 {
		fmt.Fprintf(b, "%s: none.\n\n", title)
		return
	}
	fmt.Fprintf(b, "%s:\n\n%s\n\n", title, strings.Join(rows, "\n"))
}

func topFields(t reflect.Type, each func(name string, t reflect.Type, optional bool)) {
	for i := range t.NumField() {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		if f.Anonymous && name == "" {
			topFields(f.Type, each)
			continue
		}
		each(name, f.Type, strings.Contains(options, "omit"))
	}
}

// typeName returns a type's name for readers; types outside of the API belong to package
// agent.
func typeName(t reflect.Type) string {
	switch {
	case t.Kind() == reflect.Pointer:
		return typeName(t.Elem())
	case t.Kind() == reflect.Slice && t.Elem().Kind() != reflect.Uint8:
		return "list of " + typeName(t.Elem())
	case t.Kind() == reflect.Map:
		return "object of " + typeName(t.Elem())
	case t.Kind() == reflect.Struct && kindOf(t) == "":
		return strings.TrimPrefix(t.String(), "api.")
	}
	return kindOf(t)
}

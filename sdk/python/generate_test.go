package python

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

var update = flag.Bool("update", false, "write clove/api.py anew")

const module = "clove/api.py"

// TestModuleIsCurrent keeps clove/api.py equal to the table.
func TestModuleIsCurrent(t *testing.T) {
	t.Parallel()
	want := newWriter(t).module()
	if *update {
		if err := os.WriteFile(module, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(module)
	if err != nil {
		t.Fatal(err)
	}
	if string(got) != want {
		t.Errorf("%s shows another table: go test ./sdk/python -update", module)
	}
}

// TestEveryChangeHasAKey: the client repeats each call of the table after a lost
// connection. That is safe only if a call that changes something has a key.
func TestEveryChangeHasAKey(t *testing.T) {
	t.Parallel()
	reading := []string{agents.AgentGet.Name, agents.GrantList.Name, agents.GrantCheck.Name, agents.BudgetGet.Name, agents.ModelQueue.Name, agents.AuditRead.Name}
	w := newWriter(t)
	for _, r := range w.rows {
		if keyed := r.keyed(); keyed == slices.Contains(reading, r.Name) {
			t.Errorf("%s changes nothing: %t; it has a key: %t", r.Name, !keyed, keyed)
		}
	}
}

// notes are the notifications of agent.listen, with what their parameters are. Others reach
// the agent as plain objects.
var notes = []struct {
	name   string
	params any
}{
	{api.NoteBudgetWarning, api.BudgetNote{}},
	{api.NoteBudgetPause, api.BudgetNote{}},
}

const header = `"""The methods, types and errors of the agent socket.

Generated from the table in api/methods.go by go test ./sdk/python -update.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, NamedTuple, Optional

from .errors import CloveError
from .values import read_time
`

// module is the text of clove/api.py.
func (w *writer) module() string {
	w.line("%s", header)
	w.line("VERSION = %d\n\"\"\"The version of the contract.\"\"\"\n", api.Version)
	w.line("MAX_LINE = %d\n\"\"\"The most bytes of a line on the socket.\"\"\"\n", api.MaxAgentLine)
	w.errors()
	for _, r := range w.rows {
		w.class(r.Result)
	}
	for _, n := range notes {
		w.class(n.params)
	}
	for _, noun := range w.nouns() {
		w.methods(noun)
	}
	w.all()
	w.table()
	w.line("\n__all__ = [")
	for _, name := range w.public {
		w.line("    %q,", name)
	}
	w.line("]")
	return w.String()
}

// errors writes one exception for each error word.
func (w *writer) errors() {
	var table strings.Builder
	for _, row := range api.Codes {
		name := exception(row.Word)
		w.public = append(w.public, name)
		w.line("\nclass %s(CloveError):\n    \"\"\"%s.\"\"\"\n", name, capital(row.Meaning))
		fmt.Fprintf(&table, "    %q: %s,\n", row.Word, name)
	}
	w.line("\nERRORS: dict[str, type[CloveError]] = {\n%s}\n\"\"\"The exceptions by their error word.\"\"\"\n", table.String())
}

// exception is the class of an error word: NotFoundError of not-found.
func exception(word string) string {
	var name strings.Builder
	for part := range strings.SplitSeq(word, "-") {
		name.WriteString(capital(part))
	}
	return name.String() + "Error"
}

func (w *writer) nouns() []string {
	var nouns []string
	for _, r := range w.rows {
		if !slices.Contains(nouns, r.noun) {
			nouns = append(nouns, r.noun)
		}
	}
	return nouns
}

// methods writes the class with a noun's methods.
func (w *writer) methods(noun string) {
	w.line("\nclass %sMethods:\n    \"\"\"The methods %s.*.\"\"\"\n", capital(noun), noun)
	w.line("    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:\n        self._call = call")
	for _, r := range w.rows {
		if r.noun == noun {
			w.method(r)
		}
	}
	w.line("")
}

func (w *writer) method(r row) {
	var required, optional, entries []string
	for _, p := range r.params {
		entries = append(entries, fmt.Sprintf("%q: %s", p.name, p.python))
		if p.optional {
			optional = append(optional, fmt.Sprintf("%s: Optional[%s] = None", p.python, formOf(p.t).accepts))
		} else {
			required = append(required, p.python+": "+formOf(p.t).accepts)
		}
	}
	signature := append([]string{"self"}, required...)
	if len(optional) > 0 {
		signature = append(append(signature, "*"), optional...)
	}
	answer := name(r.Result)
	w.line("\n    def %s(%s) -> %s:", safe(r.verb), spread("    ", signature), answer)
	w.docstring("        ", r.Doc, r.params)
	w.line("        params = {%s}", spread("        ", entries))
	w.line("        return %s.read(self._call(%q, params))", answer, r.Name)
}

// spread joins the parts of a list, on a line each where one line would be long.
func spread(indent string, parts []string) string {
	line := strings.Join(parts, ", ")
	if len(line) < 70 {
		return line
	}
	between := "\n" + indent + "    "
	return between + strings.Join(parts, ","+between) + ",\n" + indent
}

// all writes the class with every method.
func (w *writer) all() {
	w.line("\nclass Methods(AgentMethods):\n    \"\"\"Every method: those of agent.* themselves, the others by their noun.\"\"\"\n")
	w.line("    def __init__(self, call: Callable[[str, Mapping[str, Any]], Any]) -> None:\n        super().__init__(call)")
	for _, noun := range w.nouns() {
		if noun != "agent" {
			w.line("        self.%s = %sMethods(call)", noun, capital(noun))
		}
	}
	w.line("")
}

const tableTypes = `
class Param(NamedTuple):
    """A parameter of a method."""

    name: str
    kind: str  # string, integer, bool, time, strings, amounts (integers by name) or json
    required: bool
    doc: str


class Method(NamedTuple):
    """A row of the table."""

    name: str
    doc: str
    params: list[Param]

    @property
    def keyed(self) -> bool:
        """The call changes something, and takes a key."""
        return any(p.name == "key" for p in self.params)

`

// table writes the rows as values.
func (w *writer) table() {
	w.line("%s\nMETHODS: dict[str, Method] = {", tableTypes)
	for _, r := range w.rows {
		w.line("    %q: Method(\n        %q,\n        %s,\n        [", r.Name, r.Name, literal(r.Doc))
		for _, p := range r.params {
			w.line("            Param(%q, %q, %s, %s),", p.name, formOf(p.t).kind, truth(!p.optional), literal(p.doc))
		}
		w.line("        ],\n    ),")
	}
	w.line("}\n\"\"\"The methods that Agent.call serves.\"\"\"\n\nNOTES: dict[str, Callable[[Mapping[str, Any]], Any]] = {")
	for _, n := range notes {
		w.line("    %q: %s.read,", n.name, name(n.params))
	}
	w.line("}\n\"\"\"How the parameters of a notification are read.\"\"\"")
}

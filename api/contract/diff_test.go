package contract

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/api"
)

// base is a small contract.
func base() Contract {
	return Contract{
		Version: 1, Errors: map[string]api.Code{"busy": -1, "denied": -2}, ErrorData: Fields{"word": "string", "hint?": "string"},
		Methods: []Method{
			{Name: "a.get", Tier: api.Stable, Callers: []string{"root", "owner"}, Shape: api.ShapeCall, Errors: []string{"busy"},
				Params: Fields{"run": "string", "size?.rows": "number", "list?[].name": "string"}, Result: Fields{"id": "string", "note?": "string", "at.x": "number"}},
			{Name: "b.try", Tier: api.Experimental, Callers: []string{"agent"}, Shape: api.ShapeStream, Notifies: "b.note", Params: Fields{}, Result: Fields{whole: "any"}},
		},
		Notifications: []Notification{
			{Name: "b.note", From: api.FromClove, Params: Fields{"id": "any"}},
			{Name: "b.input", From: api.FromCaller, Params: Fields{"data": "base64"}},
		},
	}
}

// Each way to take something away is breaking, and each addition is not.
func TestDiff(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		do   func(*Contract)
		want string // ! before what is breaking
	}{
		{func(c *Contract) {}, ""},
		{func(c *Contract) { c.Methods = c.Methods[:1] }, "!b.try is gone"},
		{func(c *Contract) { c.Methods = append(c.Methods, Method{Name: "c.new", Tier: api.Stable}) }, "c.new is new"},
		{func(c *Contract) { c.Methods[0].Name = "a.other" }, "!a.get is gone; a.other is new"},
		{func(c *Contract) { c.Methods[0].Tier = api.Experimental }, "!a.get is experimental, and was stable"},
		{func(c *Contract) { c.Methods[1].Tier = api.Stable }, "b.try is stable, and was experimental"},
		{func(c *Contract) { c.Methods[0].Callers = []string{"root"} }, "!a.get is not for owner any more"},
		{func(c *Contract) { c.Methods[0].Callers = []string{"root", "owner", "agent"} }, "a.get is for agent too"},
		{func(c *Contract) { c.Methods[0].Shape = api.ShapeStream }, "!a.get is a stream, and was a call"},
		{func(c *Contract) { c.Methods[1].Notifies = "c.note" }, `!b.try notifies with "c.note", and did with "b.note"`},
		{func(c *Contract) { c.Methods[0].Errors = []string{"denied"} }, "a.get can give the error denied; a.get gives the error busy no more"},

		{func(c *Contract) { delete(c.Methods[0].Params, "run") }, "!a.get parameter run is gone"},
		{func(c *Contract) { c.Methods[0].Params["more?"] = "bool" }, "a.get parameter more is new"},
		{func(c *Contract) { c.Methods[0].Params["more"] = "bool" }, "!a.get parameter more is new, and required"},
		{func(c *Contract) { c.Methods[0].Params["more?.a"], c.Methods[0].Params["more?.b?"] = "bool", "bool" }, "a.get parameter more is new"},
		{func(c *Contract) { c.Methods[0].Params["size?.columns"] = "number" }, "!a.get parameter size.columns is new, and required"},
		{func(c *Contract) { c.Methods[0].Params["size?.columns?"] = "number" }, "a.get parameter size.columns is new"},
		{func(c *Contract) { delete(c.Methods[0].Params, "size?.rows") }, "!a.get parameter size is gone"},
		{func(c *Contract) { c.Methods[0].Params["run"] = "number" }, "!a.get parameter run is number, and was string"},
		{func(c *Contract) {
			delete(c.Methods[0].Params, "run")
			c.Methods[0].Params["run?"] = "string"
		}, "a.get parameter run may be absent"},
		{func(c *Contract) {
			delete(c.Methods[0].Params, "size?.rows")
			c.Methods[0].Params["size.rows"] = "number"
		}, "!a.get parameter size is required"},
		{func(c *Contract) {
			delete(c.Methods[0].Params, "list?[].name")
			c.Methods[0].Params["list?[].name?"] = "string"
		}, "a.get parameter list[].name may be absent"},

		{func(c *Contract) { delete(c.Methods[0].Result, "note?") }, "!a.get result note is gone"},
		{func(c *Contract) { c.Methods[0].Result["more"] = "bool" }, "a.get result more is new"},
		{func(c *Contract) { c.Methods[0].Result["id"] = "number" }, "!a.get result id is number, and was string"},
		{func(c *Contract) {
			delete(c.Methods[0].Result, "id")
			c.Methods[0].Result["id?"] = "string"
		}, "!a.get result id may be absent"},
		{func(c *Contract) {
			delete(c.Methods[0].Result, "note?")
			c.Methods[0].Result["note"] = "string"
		}, "a.get result note is required"},
		{func(c *Contract) {
			delete(c.Methods[0].Result, "at.x")
			c.Methods[0].Result["at"] = "string"
		}, "!a.get result at is string, and was an object"},
		{func(c *Contract) { c.Methods[1].Result = Fields{} }, "!b.try result * is gone"},

		{func(c *Contract) { delete(c.Errors, "busy") }, "!error busy is gone"},
		{func(c *Contract) { c.Errors["busy"] = -3 }, "!error busy has the code -3, and had -1"},
		{func(c *Contract) { c.Errors["new"] = -3 }, "error new is new"},
		{func(c *Contract) { c.ErrorData["rule?"] = "string" }, "error data field rule is new"},
		{func(c *Contract) { delete(c.ErrorData, "hint?") }, "!error data field hint is gone"},
		{func(c *Contract) { c.Notifications = c.Notifications[:1] }, "!b.input is gone"},
		{func(c *Contract) { c.Notifications[0].ForAgent = true }, "!b.note has another sender, or another receiver"},
		{func(c *Contract) { c.Notifications[0].Params["more"] = "bool" }, "b.note parameter more is new"},
		{func(c *Contract) { c.Notifications[1].Params["more"] = "bool" }, "!b.input parameter more is new, and required"},
	} {
		now := base()
		row.do(&now)
		var got []string
		for _, change := range Diff(base(), now) {
			text := change.Subject + " " + change.What
			if change.Breaking {
				text = "!" + text
			}
			got = append(got, text)
		}
		if strings.Join(got, "; ") != row.want {
			t.Errorf("%q, want %q", got, row.want)
		}
	}
}

// On the real table: whatever one takes away from it is breaking, and putting it there is not,
// but for a parameter that is required.
func TestDiffOfTheTable(t *testing.T) {
	t.Parallel()
	whole := Current()
	if changes := Diff(whole, Current()); len(changes) > 0 {
		t.Fatalf("%+v", changes)
	}
	seen := map[string]bool{} // the same object is in many results
	for i, m := range whole.Methods {
		without := Current()
		without.Methods = slices.Delete(without.Methods, i, i+1)
		tryBoth(t, m.Name, whole, without, false)
		with := Contract{Methods: []Method{m}}
		for path := range m.Params {
			m := m
			m.Params = maps.Clone(m.Params)
			delete(m.Params, path)
			required := strings.Count(path, ".")+1 > strings.Count(path, "?")
			tryBoth(t, fmt.Sprint(m.Name, " ", path), with, Contract{Methods: []Method{m}}, required)
		}
		for path := range m.Result {
			if seen[path] {
				continue
			}
			seen[path] = true
			m := m
			m.Result = maps.Clone(m.Result)
			delete(m.Result, path)
			tryBoth(t, fmt.Sprint(m.Name, " ", path), with, Contract{Methods: []Method{m}}, false)
		}
	}
}

func tryBoth(t *testing.T, what string, with, without Contract, required bool) {
	t.Helper()
	if !anyBreaking(Diff(with, without)) {
		t.Errorf("%s can be taken away", what)
	}
	if back := Diff(without, with); len(back) == 0 || anyBreaking(back) && !required {
		t.Errorf("%s cannot be added: %+v", what, back)
	}
}

func anyBreaking(changes []Change) bool {
	return slices.ContainsFunc(changes, func(c Change) bool { return c.Breaking })
}

// A contract is the same after it was written and read.
func TestContractsAreKeptAsJSON(t *testing.T) {
	t.Parallel()
	text, err := json.Marshal(Current())
	if err != nil {
		t.Fatal(err)
	}
	again, err := Parse(text)
	if err != nil || len(Diff(Current(), again)) > 0 || len(Diff(again, Current())) > 0 {
		t.Errorf("%v: %+v", err, Diff(Current(), again))
	}
}

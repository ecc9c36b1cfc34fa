package client

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// inParts answers grant.list of the run n by cursor, "" for the first part, and any other cursor
// with an error. It counts the requests.
func inParts(t *testing.T, parts map[string]api.GrantListResult) (*Client, *atomic.Int32) {
	t.Helper()
	asked := new(atomic.Int32)
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		asked.Add(1)
		var p api.GrantListParams
		part, known := api.GrantListResult{}, false
		if err := json.Unmarshal(m.Params, &p); err == nil && p.Run == "n" && m.Method == "grant.list" {
			part, known = parts[p.After]
		}
		if !known {
			return nil, api.Failure(api.CodeParams, "", "asked %s %s", m.Method, m.Params)
		}
		return part, nil
	})
	return dial(t, path), asked
}

// part is an answer with grants of these ids.
func part(next string, ids ...string) (r api.GrantListResult) {
	for _, id := range ids {
		r.Grants = append(r.Grants, api.Grant{ID: id})
	}
	r.Next = next
	return r
}

var ofN = api.GrantListParams{RunParams: api.RunParams{Run: "n"}}

// read returns the ids that All yields, and its error, which must be its last value.
func read(t *testing.T, ctx context.Context, c *Client) (ids []string, err error) {
	t.Helper()
	for g, gerr := range All(ctx, c, agents.GrantList, ofN) {
		if err != nil {
			t.Fatal("something follows an error")
		}
		if err = gerr; err == nil {
			ids = append(ids, g.ID)
		} else if g.ID != "" {
			t.Errorf("an error has the item %+v", g)
		}
	}
	return ids, err
}

func TestAllYieldsAllParts(t *testing.T) {
	t.Parallel()
	c, asked := inParts(t, map[string]api.GrantListResult{"": part("two", "a", "b"), "two": part("three"), "three": part("", "c")})
	ids, err := read(t, context.Background(), c)
	if err != nil || strings.Join(ids, "") != "abc" || asked.Load() != 3 {
		t.Errorf("%v, %v, %d requests", ids, err, asked.Load())
	}
	grants, err := Collect(All(context.Background(), c, agents.GrantList, ofN))
	if err != nil || len(grants) != 3 || grants[2].ID != "c" {
		t.Errorf("%v, %v", grants, err)
	}
}

// Elements before an error are yielded; Collect returns nothing of it.
func TestAllEndsWithAnError(t *testing.T) {
	t.Parallel()
	c, asked := inParts(t, map[string]api.GrantListResult{"": part("gone", "a", "b")})
	ids, err := read(t, context.Background(), c)
	var answered *api.Error
	if !errors.As(err, &answered) || answered.Code != api.CodeParams || strings.Join(ids, "") != "ab" || asked.Load() != 2 {
		t.Errorf("%v, %v, %d requests", ids, err, asked.Load())
	}
	if grants, err := Collect(All(context.Background(), c, agents.GrantList, ofN)); err == nil || grants != nil {
		t.Errorf("%v, %v", grants, err)
	}
}

// A server that repeats a cursor is asked until the context ends.
func TestAllEndsWithItsContext(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	asked := 0 // by one connection
	path, _ := fake(t, func(c *rpc.Conn, _ rpc.Message) (any, error) {
		if asked++; asked < 5 {
			return part("again", "a"), nil
		}
		cancel()
		_, err := c.Receive() // ends when the caller closes
		return nil, err
	})
	ids, err := read(t, ctx, dial(t, path))
	if !errors.Is(err, context.Canceled) || strings.Join(ids, "") != "aaaa" {
		t.Errorf("%v, %v", ids, err)
	}
}

// A caller that stops, also at the last item of a part, asks for no further one.
func TestAllStopsWithItsCaller(t *testing.T) {
	t.Parallel()
	c, asked := inParts(t, map[string]api.GrantListResult{"": part("two", "a", "b"), "two": part("", "c")})
	for g, err := range All(context.Background(), c, agents.GrantList, ofN) {
		if err != nil {
			t.Fatal(err)
		}
		if g.ID == "b" {
			break
		}
	}
	if asked.Load() != 1 {
		t.Errorf("%d requests", asked.Load())
	}
}

// Runs come with their reasons, and the other parameters of the request stay in each.
func TestAllOfRunsHasTheirReasons(t *testing.T) {
	t.Parallel()
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		switch string(m.Params) {
		case `{"all":true,"brief":true}`:
			return api.ListResult{Runs: []agent.Run{{Spec: agent.Spec{ID: "2"}}}, Reasons: map[agent.ID]string{"2": "it waits"}, Next: "2"}, nil
		case `{"all":true,"brief":true,"after":"2"}`:
			return api.ListResult{Runs: []agent.Run{{Spec: agent.Spec{ID: "1"}}}}, nil
		}
		return nil, api.Failure(api.CodeParams, "", "asked %s", m.Params)
	})
	runs, err := Collect(All(context.Background(), dial(t, path), methods.RunList, api.ListParams{All: true, Brief: true}))
	if err != nil || len(runs) != 2 || runs[0].Run.Spec.ID != "2" || runs[0].Reason != "it waits" || runs[1].Run.Spec.ID != "1" || runs[1].Reason != "" {
		t.Errorf("%+v, %v", runs, err)
	}
}

// The cursor of audit.read is a number.
func TestAllOfAuditRecords(t *testing.T) {
	t.Parallel()
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		if strings.Contains(string(m.Params), `"after":7`) {
			return api.AuditReadResult{Records: []json.RawMessage{json.RawMessage("8")}}, nil
		}
		return api.AuditReadResult{Records: []json.RawMessage{json.RawMessage("6"), json.RawMessage("7")}, Next: 7}, nil
	})
	records, err := Collect(All(context.Background(), dial(t, path), agents.AuditRead, api.AuditReadParams{Namespace: "a"}))
	if err != nil || !slices.EqualFunc(records, []string{"6", "7", "8"}, func(r json.RawMessage, want string) bool { return string(r) == want }) {
		t.Errorf("%s, %v", records, err)
	}
}

// Lists of accounts and days continue as well.
func TestAllOfBudgets(t *testing.T) {
	t.Parallel()
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		switch m.Method + string(m.Params) {
		case `budget.list{"account":"1"}`:
			return api.BudgetListResult{Budgets: []api.Budget{{Account: "1"}}, Next: "x"}, nil
		case `budget.list{"account":"1","after":"x"}`:
			return api.BudgetListResult{Budgets: []api.Budget{{Account: "1/ns:a"}}}, nil
		case `budget.report{"from":"2026-11-23"}`:
			return api.BudgetReportResult{Days: []api.DaySum{{Used: 1}}, Next: "y"}, nil
		case `budget.report{"from":"2026-11-23","after":"y"}`:
			return api.BudgetReportResult{Days: []api.DaySum{{Used: 2}}}, nil
		}
		return nil, api.Failure(api.CodeParams, "", "asked %s %s", m.Method, m.Params)
	})
	c, ctx := dial(t, path), context.Background()
	lines, err := Collect(All(ctx, c, methods.BudgetList, api.BudgetListParams{Account: "1"}))
	if err != nil || len(lines) != 2 || lines[1].Account != "1/ns:a" {
		t.Errorf("%+v, %v", lines, err)
	}
	days, err := Collect(All(ctx, c, methods.BudgetReport, api.BudgetReportParams{From: "2026-11-23"}))
	if err != nil || len(days) != 2 || days[1].Used != 2 {
		t.Errorf("%+v, %v", days, err)
	}
}

package client

import (
	"context"
	"encoding/json"
	"strconv"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/internal/rpc"
)

// List requests page after page, until it has all runs, or as many as were wanted.
func TestListAsksForAllParts(t *testing.T) {
	t.Parallel()
	const all, part = 8, 3
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		var p api.ListParams
		if err := json.Unmarshal(m.Params, &p); err != nil || !p.Brief {
			return nil, err
		}
		from, _ := strconv.Atoi(p.After)
		to := min(from+part, all)
		if p.Limit > 0 {
			to = min(to, from+p.Limit)
		}
		answer := api.ListResult{Reasons: map[agent.ID]string{}}
		for i := from; i < to; i++ {
			id := agent.ID(strconv.Itoa(i))
			answer.Runs = append(answer.Runs, agent.Run{Spec: agent.Spec{ID: id}})
			answer.Reasons[id] = "it waits"
		}
		if to < all {
			answer.Next = strconv.Itoa(to)
		}
		return answer, nil
	})
	c := dial(t, path)
	for limit, want := range map[int]int{0: all, 1: 1, 3: 3, 5: 5, 7: 7, 8: 8, 9: 8} {
		got, err := c.List(context.Background(), api.ListParams{Limit: limit, Brief: true})
		if err != nil || len(got.Runs) != want || len(got.Reasons) != want || (got.Next == "") != (want == all) {
			t.Fatalf("limit %d: %d runs, %d reasons, next %q, %v", limit, len(got.Runs), len(got.Reasons), got.Next, err)
		}
		for i, run := range got.Runs {
			if string(run.Spec.ID) != strconv.Itoa(i) {
				t.Errorf("limit %d: run %d is %s", limit, i, run.Spec.ID)
			}
		}
	}
}

// Grants requests part after part.
func TestGrantsAsksForAllParts(t *testing.T) {
	t.Parallel()
	const all, part = 7, 3
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		var p api.GrantListParams
		if err := json.Unmarshal(m.Params, &p); err != nil || p.Run != "n" {
			return nil, err
		}
		from, _ := strconv.Atoi(p.After)
		to := min(from+part, all)
		var answer api.GrantListResult
		for i := from; i < to; i++ {
			answer.Grants = append(answer.Grants, api.Grant{ID: strconv.Itoa(i)})
		}
		if to < all {
			answer.Next = strconv.Itoa(to)
		}
		return answer, nil
	})
	got, err := dial(t, path).Grants(context.Background(), "n")
	if err != nil || len(got) != all || got[all-1].ID != strconv.Itoa(all-1) {
		t.Errorf("%+v, %v", got, err)
	}
}

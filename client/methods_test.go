package client

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/internal/rpc"
)

// Each function calls its method with its parameters.
func TestMethodsAsk(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var asked rpc.Message
	path, _ := fake(t, func(_ *rpc.Conn, m rpc.Message) (any, error) {
		mu.Lock()
		defer mu.Unlock()
		asked = m
		return api.Nothing{}, nil
	})
	c, ctx := dial(t, path), context.Background()
	grace, memory := 3*time.Second, int64(1<<20)
	for _, row := range []struct {
		method, params string
		call           func() error
	}{
		{methods.Info.Name, `{}`, func() error { _, err := c.Info(ctx); return err }},
		{methods.Guard.Name, `"pid":7`, func() error { return c.Guard(ctx, agent.Guard{PID: 7}) }},
		{methods.Container.Name, `"container":{"id":"n"`, func() error { return c.Account(ctx, api.ContainerParams{Container: agent.Container{ID: "n"}}) }},
		{methods.RunStart.Name, `"name":"n"`, func() error { _, err := c.Start(ctx, api.StartParams{Spec: agent.Spec{Name: "n"}}); return err }},
		{methods.RunList.Name, `{"all":true}`, func() error { _, err := c.List(ctx, api.ListParams{All: true}); return err }},
		{methods.RunGet.Name, `{"run":"n"}`, func() error { _, err := c.Get(ctx, "n"); return err }},
		{methods.RunWait.Name, `{"run":"n"}`, func() error { _, err := c.Wait(ctx, "n"); return err }},
		{methods.RunRemove.Name, `{"run":"n","force":true}`, func() error { return c.Remove(ctx, "n", true) }},
		{methods.RunRename.Name, `{"run":"n","name":"m"}`, func() error { _, err := c.Rename(ctx, "n", "m"); return err }},
		{methods.RunPrune.Name, `{}`, func() error { _, err := c.Prune(ctx); return err }},
		{methods.RunStop.Name, `{"run":"n","grace_ns":3000000000}`, func() error { return c.Stop(ctx, "n", &grace) }},
		{methods.RunStop.Name, `{"run":"n"}`, func() error { return c.Stop(ctx, "n", nil) }},
		{methods.RunSignal.Name, `{"run":"n","signal":1}`, func() error { return c.Signal(ctx, "n", 1) }},
		{methods.RunPause.Name, `{"run":"n"}`, func() error { return c.Pause(ctx, "n") }},
		{methods.RunResume.Name, `{"run":"n"}`, func() error { return c.Resume(ctx, "n") }},
		{methods.RunUpdate.Name, `{"run":"n","update":{"memory_bytes":1048576}}`, func() error { _, err := c.Update(ctx, "n", agent.Update{MemoryBytes: &memory}); return err }},
		{methods.RunStats.Name, `{"run":"n"}`, func() error { _, err := c.Stats(ctx, "n"); return err }},
		{methods.RunProcesses.Name, `{"run":"n"}`, func() error { _, err := c.Processes(ctx, "n"); return err }},
		{methods.RunLogs.Name, `{"run":"n","many":true}`, func() error {
			return c.Logs(ctx, api.LogsParams{RunParams: api.RunParams{Run: "n"}}, func([]api.LogLine) error { return nil })
		}},
		{methods.EventFollow.Name, `{"run":"n"}`, func() error {
			_, err := c.Events(ctx, api.EventParams{Run: "n"}, func(api.EventNote) error { return nil })
			return err
		}},
		{agents.AgentGet.Name, `{"run":"n"}`, func() error { _, err := c.Agent(ctx, "n"); return err }},
		{agents.GrantList.Name, `{"run":"n"}`, func() error { _, err := c.Grants(ctx, "n"); return err }},
		{methods.GrantGive.Name, `{"run":"n","grant":"tool:x"}`, func() error {
			_, err := c.Give(ctx, api.GrantGiveParams{RunParams: api.RunParams{Run: "n"}, Grant: "tool:x"})
			return err
		}},
		{agents.GrantDerive.Name, `{"run":"n","from":"i","grant":"tool:x"}`, func() error {
			_, err := c.Derive(ctx, api.GrantDeriveParams{RunParams: api.RunParams{Run: "n"}, From: "i", Grant: "tool:x"})
			return err
		}},
		{agents.GrantRevoke.Name, `{"run":"n","id":"i"}`, func() error { _, err := c.Revoke(ctx, "n", "i"); return err }},
		{agents.GrantCheck.Name, `{"run":"n","what":"tool:x"}`, func() error { _, err := c.CheckGrant(ctx, "n", "tool:x"); return err }},
		{agents.BudgetGet.Name, `{"run":"n"}`, func() error { _, err := c.Budgets(ctx, "n"); return err }},
		{methods.BudgetRaise.Name, `{"run":"n","amounts":{"a":1}}`, func() error { _, err := c.RaiseBudget(ctx, "n", map[string]int64{"a": 1}); return err }},
		{methods.BudgetReset.Name, `{"run":"n","dimensions":["a"]}`, func() error { _, err := c.ResetBudget(ctx, "n", []string{"a"}); return err }},
		{methods.BudgetSet.Name, `{"account":"1/ns:a","limits":["x=1"]}`, func() error {
			_, err := c.SetBudget(ctx, api.BudgetSetParams{Account: "1/ns:a", Limits: []string{"x=1"}})
			return err
		}},
		{methods.BudgetList.Name, `{"account":"1"}`, func() error { _, err := c.ListBudgets(ctx, "1"); return err }},
		{methods.ModelList.Name, `{}`, func() error { _, err := c.Models(ctx); return err }},
		{methods.ModelTest.Name, `{"model":"m"}`, func() error { _, err := c.TestModel(ctx, "m"); return err }},
		{methods.ModelTop.Name, `{}`, func() error { _, err := c.TopModels(ctx); return err }},
		{methods.ModelPrices.Name, `{}`, func() error { _, err := c.ModelPrices(ctx); return err }},
		{methods.RunCopyOut.Name, `{"run":"n","path":"/p"}`, func() error { return c.CopyOut(ctx, "n", "/p", io.Discard) }},
		{methods.RunCopyIn.Name, `{"run":"n","path":"/p"}`, func() error { return c.CopyIn(ctx, "n", "/p", strings.NewReader("")) }},
	} {
		err := row.call()
		mu.Lock()
		if err != nil || asked.Method != row.method && asked.Method != api.NoteCloseInput || asked.Method == row.method && !strings.Contains(string(asked.Params), row.params) {
			t.Errorf("%s: %v, asked %s %s", row.method, err, asked.Method, asked.Params)
		}
		mu.Unlock()
	}
}

// A caller may stop reading a stream, and gets its own error back.
func TestStreamEndsWithItsReader(t *testing.T) {
	t.Parallel()
	path, _ := fake(t, func(c *rpc.Conn, _ rpc.Message) (any, error) {
		for {
			if err := c.Notify(api.NoteLogLine, api.LogNote{ID: 1, Line: api.LogLine{Text: "x"}}); err != nil {
				return nil, nil
			}
		}
	})
	enough, seen := errors.New("enough"), 0
	err := dial(t, path).Logs(context.Background(), api.LogsParams{}, func([]api.LogLine) error {
		if seen++; seen == 3 {
			return enough
		}
		return nil
	})
	if !errors.Is(err, enough) || seen != 3 {
		t.Errorf("%v after %d", err, seen)
	}
}

// A copy that is refused ends, also if its source never ends; a copy whose source fails is not
// taken as complete.
func TestCopyIn(t *testing.T) {
	t.Parallel()
	refused := make(chan bool, 1)
	path, _ := fake(t, func(c *rpc.Conn, m rpc.Message) (any, error) {
		var p api.CopyParams
		if err := json.Unmarshal(m.Params, &p); err != nil || p.Path == "/bad" {
			return nil, &agent.Error{Kind: agent.KindNotFound, Message: "there is no such folder"}
		}
		for {
			m, err := c.Receive()
			if err != nil || m.Method == api.NoteCloseInput {
				refused <- err != nil
				return api.Nothing{}, nil
			}
		}
	})
	c, ctx := dial(t, path), context.Background()
	silent, writer := io.Pipe()
	defer writer.Close()
	if err := c.CopyIn(ctx, "n", "/bad", silent); agent.KindOf(err) != agent.KindNotFound || err == nil {
		t.Errorf("%v", err)
	}
	broken := errors.New("the disk is gone")
	source, feed := io.Pipe()
	go func() {
		_, _ = feed.Write([]byte("half"))
		feed.CloseWithError(broken)
	}()
	if err := c.CopyIn(ctx, "n", "/good", source); !errors.Is(err, broken) || !<-refused {
		t.Errorf("%v", err)
	}
	if err := c.CopyIn(ctx, "n", "/good", strings.NewReader("whole")); err != nil || <-refused {
		t.Errorf("%v", err)
	}
}

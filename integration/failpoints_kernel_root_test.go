//go:build root

package integration

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/internal/testhost"
)

// inKernel are the failpoints of each transaction of kernel.db, before its commit and after, and the one
// between the copy of a child's files and the spawn.
var inKernel = append(decided("start", methods.BudgetSet.Name, agents.BudgetReserve.Name, agents.BudgetCharge.Name, agents.BudgetSettle.Name, agents.BudgetRelease.Name,
	methods.BudgetRaise.Name, methods.BudgetReset.Name, methods.GrantGive.Name, agents.GrantDerive.Name, agents.GrantRevoke.Name, methods.ManifestAdd.Name, agents.AgentSpawn.Name, "spawn", "meter", "audit", "sweep", "ended", "removed",
	agents.BlobOpen.Name, agents.BlobClose.Name, agents.StateSet.Name, "blob"), failpoint{"filesPacked", "", true}, failpoint{"blobWritten", "", true}, failpoint{"blobNamed", "", true}, failpoint{"blobForgotten", "", true})

func decided(whats ...string) (all []failpoint) {
	for _, what := range whats {
		all = append(all, failpoint{"kernelDecided", what, true}, failpoint{"kernelCommitted", what, false})
	}
	return all
}

// TestKernelFailpoints has cloved die, or fail, before and after the commit of each
// transaction of kernel.db. Every request that had no answer is repeated with its key. The store
// in the end is the same as without a failure, which is the control: nothing is half, lost or
// done twice.
func TestKernelFailpoints(t *testing.T) {
	f := newFaulty(t)
	want := f.share(t, failpoint{}, "")
	every := testhost.Sample(1, 4, 12)
	number := 0
	for _, point := range inKernel {
		hows := []string{"die"}
		if point.errors {
			hows = append(hows, "error")
		}
		for _, how := range hows {
			if number++; number%every != 0 {
				continue
			}
			t.Run(point.name+point.at+"/"+how, func(t *testing.T) {
				if got := f.share(t, point, how); got != want {
					t.Errorf("%s\nwithout a failure\n%s", got, want)
				}
			})
		}
	}
}

// sharing is a run whose agent, owner and supervisor call everything that changes kernel.db.
type sharing struct {
	*faulty
	name string
	id   agent.ID
	keys int
}

// share leads one run from its start to its removal, with one failure, and returns what
// kernel.db had of it.
func (f *faulty) share(t *testing.T, point failpoint, how string) (stored string) {
	defer func(outer *testing.T) { f.t = outer }(f.t)
	process := "cloved"
	if point.name == "" || point.at == "sweep" { // cloved sweeps when it starts
		process = ""
	}
	f.arm(t, point, process, how)
	s := &sharing{faulty: f, name: "shared-" + string(agent.NewID())}
	s.do(methods.BudgetSet.Name, map[string]any{"account": "0/name:" + s.name, "limits": []string{"reviews=1000"}}, nil)
	s.begin()
	s.everyChange()
	s.awaitFailure(process, point, "ended", "removed", "blob", "blobForgotten")
	stored = s.stored()
	if point.at == "sweep" {
		s.diesWhenItStarts(point, how)
	}
	s.repeat(func(ctx context.Context, c *client.Client, _ *faulty) error {
		return notFoundIsFine(client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: string(s.id)}, Force: true}))
	})
	s.awaitFailure(process, point)
	until(t, "the account is forgotten", func() bool { return !slices.Contains(s.accounts(), fmt.Sprintf("0/run:%s", s.id)) })
	stored += "\nat last " + s.account("0/name:"+s.name)
	until(t, "the blob is removed", func() bool { left, _ := os.ReadDir(filepath.Join(f.state, "blobs")); return len(left) == 0 })
	if left, _ := os.ReadDir(filepath.Join(f.state, "spools")); len(left) != 0 {
		t.Errorf("files of a child are left: %v", left)
	}
	for _, args := range [][]string{{"check"}, {"audit", "verify"}} {
		if r := f.clove(args...); r.code != 0 {
			t.Errorf("%v: %d\n%s%s", args, r.code, r.stdout, r.stderr)
		}
	}
	return stored
}

// repeat makes a request until it is answered.
func (s *sharing) repeat(ask func(context.Context, *client.Client, *faulty) error) {
	s.t.Helper()
	err := s.request(ask)
	for range 2 {
		if lostAnswer(err) {
			s.stop(unix.SIGKILL)
			s.serve()
		}
		if err != nil {
			err = s.request(ask)
		}
	}
	if err != nil {
		s.t.Errorf("%s: %v", s.name, err)
	}
}

func notFoundIsFine(err error) error {
	if agent.KindOf(err) == agent.KindNotFound && !lostAnswer(err) {
		return nil
	}
	return err
}

// begin starts the run, again if cloved died meanwhile: then its supervisor has no rules to
// start it with.
func (s *sharing) begin() {
	s.t.Helper()
	s.repeat(func(ctx context.Context, c *client.Client, _ *faulty) error {
		if err := notFoundIsFine(client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: s.name}, Force: true})); err != nil {
			return err
		}
		spec := s.spec(s.name, "sleep 1000")
		spec.Kernel = agent.Kernel{Grants: []string{"tool:fetch"}, Budgets: []string{"reviews=100", "wall_ms=1000000000", "children=1"}}
		s.id = spec.ID
		_, err := client.Do(ctx, c, methods.RunStart, api.StartParams{Spec: spec})
		return err
	})
}

// do calls a method as root.
func (s *sharing) do(method string, params map[string]any, result any) {
	s.t.Helper()
	s.repeat(func(ctx context.Context, c *client.Client, _ *faulty) error {
		return c.Call(ctx, method, params, result)
	})
}

// owner is do for a method about the run, with a key.
func (s *sharing) owner(method string, params map[string]any, result any) {
	s.t.Helper()
	s.keys++
	params["run"], params["key"] = s.id, fmt.Sprint(s.keys)
	s.do(method, params, result)
}

// agent calls a method as the supervisor does for the agent.
func (s *sharing) agent(method string, params map[string]any, result any) {
	s.t.Helper()
	s.keys++
	params["key"] = fmt.Sprint(s.keys)
	text, err := json.Marshal(params)
	if err != nil {
		s.t.Fatal(err)
	}
	s.do(methods.KernelCall.Name, map[string]any{"run": s.id, "method": method, "params": json.RawMessage(text)}, result)
}

// everyChange calls each method that changes something.
func (s *sharing) everyChange() {
	s.t.Helper()
	reviews := func(n int) map[string]any { return map[string]any{"amounts": map[string]int{"reviews": n}} }
	var first, second, open api.BudgetReserveResult
	s.agent(agents.BudgetReserve.Name, reviews(30), &first)
	s.agent(agents.BudgetReserve.Name, reviews(20), &second)
	s.agent(agents.BudgetReserve.Name, reviews(3), &open)
	s.agent(agents.BudgetCharge.Name, reviews(5), nil)
	settle := reviews(10)
	settle["reservation"] = first.Reservation
	s.agent(agents.BudgetSettle.Name, settle, nil)
	s.agent(agents.BudgetRelease.Name, map[string]any{"reservation": second.Reservation}, nil)
	s.owner(methods.BudgetRaise.Name, reviews(50), nil)
	s.owner(methods.BudgetReset.Name, map[string]any{"dimensions": []string{"reviews"}}, nil)
	s.agent(agents.BudgetCharge.Name, reviews(7), nil)
	var given, derived api.GrantResult
	s.owner(methods.GrantGive.Name, map[string]any{"grant": "tool:search"}, &given)
	s.agent(agents.GrantDerive.Name, map[string]any{"from": given.Grant.ID, "grant": "tool:search"}, &derived)
	s.agent(agents.GrantDerive.Name, map[string]any{"from": derived.Grant.ID, "grant": "tool:search"}, nil)
	s.agent(agents.GrantRevoke.Name, map[string]any{"id": derived.Grant.ID}, nil)
	s.oneBlob()
	s.oneChild()
}

// oneBlob has the agent keep a blob, which goes with the run.
func (s *sharing) oneBlob() {
	s.t.Helper()
	content := []byte(strings.Repeat("of "+s.name, 1000))
	var opened api.BlobOpenResult
	s.agent(agents.BlobOpen.Name, map[string]any{"bytes": len(content)}, &opened)
	s.do(methods.KernelCall.Name, map[string]any{"run": s.id, "method": agents.BlobWrite.Name, "params": api.BlobWriteParams{Upload: opened.Upload, Data: content}}, nil)
	var made api.BlobResult
	s.agent(agents.BlobClose.Name, map[string]any{"upload": opened.Upload}, &made)
	s.agent(agents.StateSet.Name, map[string]any{"path": "kept", "value": nil, "blob": made.SHA256}, nil)
}

// oneChild has the agent start another with a file, and waits for its end.
func (s *sharing) oneChild() {
	s.t.Helper()
	manifest := s.spec("", "test -s /tmp/given && exit 3")
	manifest.ID, manifest.Name = "", ""
	manifest.Limits.MemoryBytes, manifest.Limits.MemorySwapBytes = 64<<20, 64<<20
	s.keys++
	s.do(methods.ManifestAdd.Name, map[string]any{"name": "worker", "spec": manifest, "key": fmt.Sprint(s.name, s.keys)}, nil)
	s.owner(methods.GrantGive.Name, map[string]any{"grant": "spawn:worker"}, nil)
	var spawned api.SpawnResult
	s.agent(agents.AgentSpawn.Name, map[string]any{"manifest": "worker", "files": []map[string]string{{"from": "/etc/passwd", "to": "/tmp/given"}}}, &spawned)
	until(s.t, "the child has ended", func() bool { return s.children() == "exited 3" })
}

// children are the ends of the run's children.
func (s *sharing) children() string {
	s.t.Helper()
	var list api.ChildListResult
	s.do(agents.AgentList.Name, map[string]any{"run": s.id}, &list)
	var ends []string
	for _, k := range list.Children {
		if k.ExitCode == nil {
			return ""
		}
		ends = append(ends, fmt.Sprint(k.Status, " ", *k.ExitCode))
	}
	return strings.Join(ends, ", ")
}

// awaitFailure waits for a failure that no request meets, unless it comes later.
func (s *sharing) awaitFailure(process string, point failpoint, later ...string) {
	s.t.Helper()
	if process == "" || slices.Contains(later, cmp.Or(point.at, point.name)) {
		return
	}
	until(s.t, "the failpoint is reached", func() bool { _, err := os.Stat(s.seen()); return err == nil })
}

// diesWhenItStarts has the next cloved fail while it settles what the run had reserved: the
// one before has died when the run ended.
func (s *sharing) diesWhenItStarts(point failpoint, how string) {
	s.t.Helper()
	s.stop(unix.SIGKILL)
	s.env = s.order(failpoint{name: "kernelDecided", at: "ended"}, "die")
	s.serve()
	s.env = nil
	if err := s.request(func(ctx context.Context, c *client.Client, _ *faulty) error {
		return client.Perform(ctx, c, methods.RunStop, api.StopParams{RunParams: api.RunParams{Run: string(s.id)}, GraceNS: new(int64)})
	}); err != nil && !lostAnswer(err) {
		s.t.Error(err)
	}
	s.awaitFailure("cloved", point)
	s.stop(unix.SIGKILL)
	if err := os.Remove(s.seen()); err != nil {
		s.t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), patience())
	defer cancel()
	if how == "die" {
		cmd := exec.CommandContext(ctx, filepath.Join(s.bin, "cloved"), "--root", s.state, "--run-dir", s.run, "--config", s.config())
		cmd.Env = append(os.Environ(), s.order(point, how)...)
		err := s.host.begin(cmd)
		if err == nil {
			_ = cmd.Wait() // it is killed
		}
		if err != nil || ctx.Err() != nil {
			s.t.Errorf("cloved does not die: %v, %v", err, ctx.Err())
		}
	} else {
		s.env = s.order(point, how)
	}
	s.serve()
	s.env = nil
	if _, err := os.Stat(s.seen()); err != nil {
		s.t.Errorf("the failpoint was not reached: %v", err)
	}
}

// stored is what the run has, without ids and times.
func (s *sharing) stored() string {
	s.t.Helper()
	var list api.GrantListResult
	s.do(agents.GrantList.Name, map[string]any{"run": s.id}, &list)
	var grants []string
	for _, g := range list.Grants {
		grants = append(grants, fmt.Sprintf("%s derived %t", g.Grant, g.Parent != ""))
	}
	slices.Sort(grants)
	return fmt.Sprintf("%q\n%s\n%s\n%s", grants, s.children(), s.account(fmt.Sprintf("0/run:%s", s.id)), s.account("0/name:"+s.name))
}

// account is the line of reviews of an account.
func (s *sharing) account(key string) string {
	s.t.Helper()
	for _, b := range s.budgets() {
		if b.Account == key && b.Dimension == "reviews" {
			return fmt.Sprintf("%d granted, %d reserved, %d used, peak %d", *b.Granted, b.Reserved, b.Used, b.Peak)
		}
	}
	return "none"
}

func (s *sharing) budgets() []api.Budget {
	s.t.Helper()
	var all api.BudgetListResult
	s.do(methods.BudgetList.Name, map[string]any{"account": "0"}, &all)
	return all.Budgets
}

func (s *sharing) accounts() (all []string) {
	s.t.Helper()
	for _, b := range s.budgets() {
		all = append(all, b.Account)
	}
	return all
}

package daemon

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// one is an OCI container that ended with exit status 7.
func one() api.ContainerParams {
	began := time.Date(2026, 1, 2, 12, 0, 0, 0, time.UTC)
	return api.ContainerParams{Container: agent.Container{ID: "one", Directory: "/run/engine/one"},
		Record: agent.Record{Version: agent.RecordVersion, ID: "one", Name: "one", Command: []string{"sh", "-c", "exit 7"},
			Started: began, Ended: began.Add(time.Second), Status: agent.StatusExited, ExitCode: 7}}
}

// TestAContainersEndIsListed: its run can also be shown, waited for, followed and pruned.
func TestAContainersEndIsListed(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c, ctx := r.serve(), within(t)
	must(t, client.Perform(ctx, c, methods.Container, one()))
	listed, err := client.Collect(client.All(ctx, c, methods.RunList, api.ListParams{All: true, Brief: true}))
	must(t, err)
	live, err := client.Collect(client.All(ctx, c, methods.RunList, api.ListParams{}))
	must(t, err)
	if len(listed) != 1 || listed[0].Run.Spec.Name != "oci+one" || len(live) != 0 {
		t.Errorf("%+v, %+v", listed, live)
	}
	got, err := client.Do(ctx, c, methods.RunGet, api.RunParams{Run: "oci+one"})
	must(t, err)
	if run := got.Run; run.Container == nil || *run.Container != one().Container || run.Record.ExitCode != 7 || run.Owner.UID != 0 {
		t.Errorf("%+v", run)
	}
	if waited, err := client.Do(ctx, c, methods.RunWait, api.RunParams{Run: "oci+one"}); err != nil || waited.Record.ExitCode != 7 {
		t.Errorf("%v, %+v", err, waited)
	}
	var events []agent.RunEvent
	_, err = client.Each(ctx, c, methods.EventFollow, api.EventParams{After: new(uint64)}, func(n api.EventNote) error { events = append(events, *n.Event); return nil })
	must(t, err)
	if len(events) != 1 || events[0].Kind != agent.ContainerEnded || events[0].Name != "oci+one" || events[0].Detail != "container one" {
		t.Errorf("%+v", events)
	}
	pruned, err := client.Do(ctx, c, methods.RunPrune, api.Nothing{})
	must(t, err)
	if len(pruned.Removed) != 1 || pruned.Removed[0] != one().Container.RunID() {
		t.Errorf("%+v", pruned)
	}
}

// TestAContainerIsTheEngines: of all methods for a run, only those that need nothing but its
// record work.
func TestAContainerIsTheEngines(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c, ctx := r.serve(), within(t)
	must(t, client.Perform(ctx, c, methods.Container, one()))
	refused := 0
	for _, m := range methods.All() {
		if m.Access != api.AccessOwner || ofRecords[m.Name] {
			continue
		}
		refused++
		params := strings.ReplaceAll(`{"run":"oci+one"`+matrix[m.Name].params+`}`, `"-"`, "")
		conn := r.dial()
		must(t, conn.SetDeadline(time.Now().Add(patience)))
		_, err := fmt.Fprintf(conn, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", m.Name, params)
		must(t, err)
		answer, err := conn.Receive()
		must(t, err)
		fault := api.ParseError(answer.Error)
		wantCode(t, fault, api.CodeConflict)
		if !strings.Contains(fault.Error(), "OCI container") {
			t.Errorf("%s: %v", m.Name, fault)
		}
	}
	if refused < 10 {
		t.Errorf("%d methods were tried", refused)
	}
	must(t, client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: "oci+one"}, Force: true}))
}

// TestOnlyRootSendsRecords: a member can neither send such a record nor see one.
func TestOnlyRootSendsRecords(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	must(t, client.Perform(within(t), r.serve(), methods.Container, one()))
	member := caller{principal: principal{owner: agent.Owner{UID: 1000, GID: 1000}}}
	m, _ := methods.Find(methods.Container.Name)
	_, err := r.d.dispatcher().allow(member.principal, m, decoded(m, nil))
	wantCode(t, err, api.CodeDenied)
	get, _ := methods.Find(methods.RunGet.Name)
	_, err = r.d.dispatcher().allow(member.principal, get, decoded(get, []byte(`{"run":"oci+one"}`)))
	wantCode(t, err, api.CodeNotFound)
}

func TestARecordThatCannotBe(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	c, ctx := r.serve(), within(t)
	for name, change := range map[string]func(*api.ContainerParams){
		"no way to end": func(p *api.ContainerParams) { p.Record.Status = "flew" },
		"another's":     func(p *api.ContainerParams) { p.Record.ID = "two" },
		"no container":  func(p *api.ContainerParams) { p.Container = agent.Container{} },
	} {
		p := one()
		change(&p)
		err := client.Perform(ctx, c, methods.Container, p)
		if err == nil || agent.KindOf(err) != agent.KindInvalid {
			t.Errorf("%s: %v", name, err)
		}
	}
	long := one()
	long.Record.Command = []string{strings.Repeat("x", maxSmall)}
	wantCode(t, client.Perform(ctx, c, methods.Container, long), api.CodeTooLarge)
	must(t, client.Perform(ctx, c, methods.Container, one()))
}

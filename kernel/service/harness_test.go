package service

import (
	"context"
	"encoding/json"
	"errors"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/store"
)

// patience bounds every wait of a test, also on a loaded machine.
const patience = time.Minute

// note is a row of the service of the tests.
type note struct {
	Run  agent.ID `json:"run"`
	Name string   `json:"name"`
	Text string   `json:"text"`
}

var notes = store.Table[note]{Bucket: "notes", Noun: "note", OfRun: true, Key: func(n *note) string { return string(n.Run) + "/" + n.Name }}

type putParams struct {
	Name  string `json:"name"`
	Text  string `json:"text"`
	Costs int64  `json:"costs,omitempty"`
	Ask   bool   `json:"ask,omitempty"`
	Key   string `json:"key,omitempty"`
}

func (p putParams) CallKey() string { return p.Key }

type nameParams struct {
	Name string `json:"name"`
}

type answerParams struct {
	ID      string   `json:"id"`
	Run     agent.ID `json:"of"`
	Approve bool     `json:"approve"`
}

type tellParams struct {
	Run agent.ID `json:"of"`
}

var (
	tellRow   = api.Row[tellParams, api.Nothing]{Name: "note.tell", Access: api.AccessAgent}
	putRow    = api.Row[putParams, note]{Name: "note.put", Access: api.AccessAgent}
	getRow    = api.Row[nameParams, note]{Name: "note.get", Access: api.AccessAgent}
	waitRow   = api.Row[nameParams, note]{Name: "note.wait", Access: api.AccessAgent}
	answerRow = api.Row[answerParams, api.Nothing]{Name: "note.answer", Access: api.AccessMember}
	actRow    = api.Row[nameParams, api.Nothing]{Name: "note.act", Access: api.AccessRoot}
)

// rig is an engine over a real file and a real log, with a service that uses every stage.
type rig struct {
	t *testing.T
	*Engine
	dir    string
	file   *store.Kernel
	log    *audit.Log
	run    agent.Run
	stages *answers
	change func(*Config)
	more   Method // of the service, from the next open on; without a name: none
	close  func() // may be called again
}

func newRig(t *testing.T) *rig {
	t.Helper()
	return newRigWith(t, func(*Config) {})
}

func newRigWith(t *testing.T, change func(*Config)) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), run: newRun(), stages: &answers{granted: true}, change: change}
	r.open()
	r.attach(r.run)
	return r
}

func newRun() agent.Run {
	return agent.Run{Spec: agent.Spec{ID: agent.NewID(), Name: "worker"}, Owner: agent.Owner{UID: 1000, GID: 1000}}
}

// open opens the files as cloved does at its start.
func (r *rig) open() {
	r.t.Helper()
	var err error
	r.file, err = store.OpenKernel(filepath.Join(r.dir, "kernel.db"), patience, Questions, notes)
	must(r.t, err)
	r.log, err = audit.Open(filepath.Join(r.dir, "audit"), audit.RunOptions())
	must(r.t, err)
	queued, err := Queued(r.file, filepath.Join(r.dir, "audit"))
	must(r.t, err)
	s := r.stages
	config := Config{Store: r.file, Log: r.log, Queued: queued, Grants: s, Taints: s, Ledger: s, Approvals: s,
		Standing: func(*store.KernelTx, agent.Run, time.Time) (api.Standing, time.Time, error) {
			s.count(&s.stood)
			return api.Standing{}, time.Time{}, nil
		}}
	r.change(&config)
	r.Engine, err = NewEngine(config, r.service())
	must(r.t, err)
	r.close = sync.OnceFunc(func() {
		must(r.t, r.Engine.Close())
		must(r.t, r.log.Close())
		problems, err := r.file.Check()
		must(r.t, err)
		for _, problem := range problems {
			r.t.Error("check:", problem)
		}
		must(r.t, r.file.Close())
	})
	r.t.Cleanup(func() { r.close() })
}

// attach returns the standings that a run's supervisor gets.
func (r *rig) attach(run agent.Run) <-chan api.Standing {
	r.t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	r.t.Cleanup(leave)
	standings := make(chan api.Standing, 1000)
	must(r.t, r.Attach(ctx, run, 1, nil, func(now api.Standing) { standings <- now }))
	<-standings
	return standings
}

func (r *rig) service() *Service {
	stages := Stages[putParams]{
		Covers:  func(p putParams) []string { return []string{"tool:" + p.Name, "tool:put", "tool:put"} },
		Avoids:  func(putParams) []string { return []string{"web"} },
		Costs:   costs,
		Approve: func(p putParams) string { return map[bool]string{true: "put " + p.Name}[p.Ask] },
		About:   func(p putParams) string { return p.Name },
	}
	s := New("note", notes)
	if r.more.Name != "" {
		s.On(r.more)
	}
	return s.On(
		Write(putRow, stages, func(c *Call, p putParams) (note, Outcome, error) {
			n := note{c.Run.Spec.ID, p.Name, p.Text}
			return n, Outcome{About: p.Name, Topics: []Topic{topicOf(c, p.Name)}}, notes.Put(c.Tx, &n)
		}),
		Read(getRow, Stages[nameParams]{}, get),
		Wait(waitRow, Stages[nameParams]{}, func(c *Call, p nameParams) Topic { return topicOf(c, p.Name) }, get),
		Write(answerRow, Stages[answerParams]{}, func(c *Call, p answerParams) (api.Nothing, Outcome, error) {
			r.stages.decide(p.ID, p.Approve)
			return api.Nothing{}, Outcome{Durable: []func(){func() { _ = r.Answered(Question{p.Run, p.ID}) }}}, nil
		}),
		Write(tellRow, Stages[tellParams]{}, func(_ *Call, p tellParams) (none api.Nothing, out Outcome, err error) {
			out.Notify(p.Run, Notice{Kind: "note.told", Key: "a", Params: api.GrantsNote{}})
			return none, out, nil
		}),
		Act(actRow, func(c *Call, p nameParams) (api.Nothing, Outcome, error) {
			return api.Nothing{}, Outcome{About: p.Name}, nil
		}),
	)
}

func topicOf(c *Call, name string) Topic { return Topic("note/" + string(c.Run.Spec.ID) + "/" + name) }

func get(c *Call, p nameParams) (n note, out Outcome, err error) {
	if p.Name == "broken" {
		panic("a mistake of the method")
	}
	found, err := notes.Get(c.Tx, string(c.Run.Spec.ID)+"/"+p.Name)
	if err == nil && found == nil {
		err = ErrNotYet
	}
	if err != nil {
		return n, out, err
	}
	return *found, out, nil
}

func (r *rig) asAgent(ctx context.Context, method string, params any) (json.RawMessage, error) {
	return r.Call(ctx, Caller{Run: r.run, Agent: true, UID: 1000}, Request{Method: method, Text: encode(params)})
}

func encode(params any) json.RawMessage {
	text, err := json.Marshal(params)
	if err != nil {
		panic(err)
	}
	return text
}

// entries closes the rig and returns the log.
func (r *rig) entries() (all []audit.Entry) {
	r.t.Helper()
	r.close()
	must(r.t, audit.Query(filepath.Join(r.dir, "audit"), audit.Filter{}, func(e audit.Entry) error { all = append(all, e); return nil }))
	return all
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func wantCode(t testing.TB, err error, code api.Code, stage string) {
	t.Helper()
	var fault *api.Error
	if !errors.As(err, &fault) || fault.Code != code || fault.Data.Step != stage {
		t.Errorf("got %v, want code %d of %q", err, code, stage)
	}
}

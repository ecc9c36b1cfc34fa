package kernel

import (
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/spawn"
)

// makes is a lead that may make queues and spawn worker.
func makes(t *testing.T, sheet agent.Spec, has ...string) *shop {
	t.Helper()
	s := &shop{newFamily(t, sheet, agent.Kernel{Grants: append([]string{"name:job/*", "send:job/*"}, has...)})}
	must(t, s.RecoverChildren())
	return s
}

func (s *shop) opens(p api.QueueOpenParams) (api.Queue, error) {
	s.t.Helper()
	text, err := s.asAgent(agents.QueueOpen.Name, p)
	if err != nil {
		return api.Queue{}, err
	}
	return answerOf[api.QueueResult](s.t)(text, nil).Queue, nil
}

// queued is a queue as a user sees it; false: it is not there.
func (s *shop) listedQueue(name string) (api.Queue, bool) {
	s.t.Helper()
	all, err := asks[api.QueueListResult](s.rig, 1000, methods.QueueList.Name, api.QueueListParams{})
	must(s.t, err)
	at := slices.IndexFunc(all.Queues, func(q api.Queue) bool { return q.Name == name })
	if at < 0 {
		return api.Queue{}, false
	}
	return all.Queues[at], true
}

// What is started for a queue that an agent has made is a child of that agent, which has its places and rights, and is
// removed with its end.
func TestAnAgentsQueueStartsItsChildren(t *testing.T) {
	t.Parallel()
	s := makes(t, sheetOf(agent.Kernel{}))
	q, err := s.opens(api.QueueOpenParams{Queue: "builds", Manifest: "worker", Concurrency: 2, Attempts: 2})
	must(t, err)
	if q.Maker != s.run.Spec.ID || !strings.HasPrefix(q.Digest, "sha256:") {
		t.Fatalf("%+v", q)
	}
	one, two, three := s.posts("builds", "one", api.NewJob{}), s.posts("builds", "two", api.NewJob{}), s.posts("builds", "three", api.NewJob{})
	first, second := s.starts("one"), s.starts("two")
	run, _ := s.runs.Get(first)
	if run.Parent != s.run.Spec.ID || len(run.Above) != 1 || run.Above[0].ID != s.run.Spec.ID {
		t.Errorf("%+v", run)
	}
	if working := s.working(); len(working) != 2 {
		t.Error(working)
	}
	s.over(first, spawn.End{Record: exited(0).Record, Output: "built"})
	if job := s.wants(one.ID, api.JobDone, ""); job.Output != "built" {
		t.Errorf("%+v", job)
	}
	third := s.starts("three")
	s.over(second, *new(exited(3)))
	s.wants(two.ID, api.JobDelayed, "its run ended: exited, exit status 3")
	s.over(third, *new(exited(0)))
	s.wants(three.ID, api.JobDone, "")
	s.until("the ended ones are gone", func() bool {
		return len(answerOf[api.ChildListResult](t)(s.asAgent(agents.AgentList.Name, api.ChildListParams{})).Children) == 0
	})
	s.later(2 * time.Second)
	s.Kernel.alarm.set(s.config.Clock())
	again := s.starts("two")
	s.close()
	s.open()
	s.attach(false)
	must(t, s.RecoverChildren())
	s.over(again, *new(exited(0)))
	s.wants(two.ID, api.JobDone, "")
	s.sound()
}

func (s *shop) sound() { (&post{rig: s.rig}).sound() }

// An agent makes no queue whose manifest it may not start: without a grant, wider than itself, or another than its
// grant holds. The control is one that it may.
func TestAnAgentsQueueIsNoWiderThanItsAgent(t *testing.T) {
	t.Parallel()
	wide := sheetOf(agent.Kernel{})
	wide.Limits.MemoryBytes, wide.Limits.MemorySwapBytes = 1<<30, 1<<30
	s := makes(t, wide)
	p := api.QueueOpenParams{Queue: "builds", Manifest: "worker"}
	_, err := s.opens(p)
	wantCode(t, err, api.CodeDenied)
	if !strings.Contains(err.Error(), "memory") {
		t.Error(err)
	}
	_, spawned := s.asAgent(agents.AgentSpawn.Name, api.SpawnParams{Manifest: "worker"})
	if spawned == nil || spawned.Error() != err.Error() {
		t.Errorf("agent.spawn says %v, queue.open %v", spawned, err)
	}
	s.add("other", sheetOf(agent.Kernel{}))
	_, err = s.opens(api.QueueOpenParams{Queue: "builds", Manifest: "other"})
	wantCode(t, err, api.CodeDenied)
	poor := &shop{newFamily(t, sheetOf(agent.Kernel{}), agent.Kernel{Grants: []string{"name:job/mine"}})}
	_, err = poor.opens(p)
	wantCode(t, err, api.CodeDenied)
	if _, found := s.listedQueue("builds"); found {
		t.Error("it was made")
	}
	p.Queue = "mine"
	_, err = poor.opens(p)
	must(t, err)
}

// The queue holds the manifest's digest, also where another one has its name and is granted meanwhile: nothing else is
// started for it.
func TestAnAgentsQueueHoldsItsDigest(t *testing.T) {
	t.Parallel()
	s := makes(t, sheetOf(agent.Kernel{}))
	q, err := s.opens(api.QueueOpenParams{Queue: "builds", Manifest: "worker"})
	must(t, err)
	sheet := sheetOf(agent.Kernel{})
	sheet.Command = agent.RawStrings{"/bin/other"}
	if added := s.add("worker", sheet); added.Digest == q.Digest {
		t.Fatal("control: the digest is the same")
	}
	s.posts("builds", "one", api.NewJob{})
	run, _ := s.runs.Get(s.starts("one"))
	if !slices.Equal(run.Spec.Command, agent.RawStrings{"/bin/true"}) {
		t.Errorf("%q", run.Spec.Command)
	}
}

// Queues of users and of other runs are not an agent's to change; it makes few; and they end with it, but for those
// that have jobs.
func TestAnAgentsQueueIsItsOwn(t *testing.T) {
	t.Parallel()
	s := makes(t, sheetOf(agent.Kernel{}))
	s.takes(api.QueueAddParams{Name: "users"})
	_, err := s.opens(api.QueueOpenParams{Queue: "users"})
	wantCode(t, err, api.CodeConflict)
	for _, name := range []string{"users", "none"} {
		_, err = s.asAgent(agents.QueueClose.Name, api.QueueCloseParams{Queue: name})
		wantCode(t, err, api.CodeNotFound)
	}
	beside := s.works(1000, "", "beside")
	_, err = s.opens(api.QueueOpenParams{Queue: "builds"})
	must(t, err)
	_, err = beside.asAgent(agents.QueueOpen.Name, api.QueueOpenParams{Queue: "builds"})
	wantCode(t, err, api.CodeConflict)
	_, err = beside.asAgent(agents.QueueClose.Name, api.QueueCloseParams{Queue: "builds"})
	wantCode(t, err, api.CodeNotFound)
	for i := range 15 {
		_, err = s.opens(api.QueueOpenParams{Queue: "q" + string(rune('a'+i))})
		must(t, err)
	}
	_, err = s.opens(api.QueueOpenParams{Queue: "more"})
	wantCode(t, err, api.CodeBusy)
	_, err = s.asAgent(agents.QueueClose.Name, api.QueueCloseParams{Queue: "qa"})
	must(t, err)
	_, err = s.opens(api.QueueOpenParams{Queue: "full", Manifest: "worker"})
	must(t, err)
	_, err = asks[api.JobResult](s.rig, 1000, methods.JobsAdd.Name, api.JobsAddParams{NewJob: api.NewJob{Queue: "full", Body: encode("1"), DelayMS: 1000}})
	must(t, err)
	_, err = s.asAgent(agents.QueueClose.Name, api.QueueCloseParams{Queue: "full"})
	wantCode(t, err, api.CodeConflict)
	must(t, s.Happened(agent.RunEvent{Kind: agent.RunEnded, ID: s.run.Spec.ID, Owner: s.run.Owner, Time: s.config.Clock()}, ""))
	if q, found := s.listedQueue("full"); !found || q.Why != "the agent that has made it has ended" || q.Waiting != 1 {
		t.Errorf("%v %+v", found, q)
	}
	for _, name := range []string{"builds", "qb"} {
		if _, found := s.listedQueue(name); found {
			t.Errorf("%s is there", name)
		}
	}
	if _, found := s.listedQueue("users"); !found {
		t.Error("a user's queue went with an agent")
	}
	s.later(2 * time.Second)
	s.Kernel.alarm.set(s.config.Clock())
	s.posts("users", "after", api.NewJob{})
	s.starts("after")
	if working := s.working(); len(working) != 1 {
		t.Errorf("%v were started for an agent that has ended", working)
	}
}

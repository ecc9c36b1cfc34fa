//go:build root

package integration

import (
	"context"
	"encoding/json"
	"errors"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/internal/testhost"
)

// numberOf reads a number from the environment, for long or repeated runs.
func numberOf(t *testing.T, variable string, standard int) int {
	t.Helper()
	text := os.Getenv(variable)
	if text == "" {
		return standard
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		t.Fatalf("%s: %v", variable, err)
	}
	return n
}

// storm is a cloved that is killed repeatedly while clients use it.
type storm struct {
	*cloved
	*model
	random  *rand.Rand
	writers []*writer
	buried  int
}

// TestCycles kills cloved at random moments, thousands of times, and a supervisor now and
// then. After each kill the test checks that the next cloved knows everything that was
// acknowledged. CLOVE_CYCLES sets the number of kills, CLOVE_SEED repeats a run.
func TestCycles(t *testing.T) {
	cycles := numberOf(t, "CLOVE_CYCLES", testhost.Sample(2000, 100, 40))
	seed := numberOf(t, "CLOVE_SEED", int(time.Now().UnixNano()%1e9))
	t.Logf("%d cycles, CLOVE_SEED=%d", cycles, seed)
	s := newStorm(t, seed)
	began := time.Now()
	for i := range cycles {
		s.cycle(i)
		if len(s.faults) > 0 {
			s.ownRecords()
			t.Fatalf("cycle %d of CLOVE_SEED=%d: %q", i, seed, s.faults[:min(len(s.faults), 10)])
		}
	}
	s.last()
	t.Logf("%d kills of cloved and %d of supervisors in %v: %d acknowledged writes, %d events, nothing lost",
		cycles, s.buried, time.Since(began).Round(time.Second), s.answers, s.model.last)
	if s.answers < cycles || s.buried == 0 && cycles > 100 {
		t.Errorf("control: only %d writes in %d cycles: the moments are wrong", s.answers, cycles)
	}
}

// ownRecords logs how agents ended that only their writers may end.
func (s *storm) ownRecords() {
	for _, w := range s.writers {
		if r := s.clove("inspect", string(w.own.id)); r.code == 0 {
			s.t.Logf("%v, its supervisor killed: %v: %s", w.own.names, w.own.mortal, r.stdout)
		}
	}
}

func newStorm(t *testing.T, seed int) *storm {
	s := &storm{cloved: newCloved(t), model: newModel(), random: rand.New(rand.NewPCG(uint64(seed), 5))}
	s.detach("pattern", "true", "--memory", "64M")
	var run agent.Run
	if err := json.Unmarshal([]byte(s.ok("inspect", "pattern")), &run); err != nil {
		t.Fatal(err)
	}
	s.ok("wait", "pattern")
	s.ok("rm", "pattern")
	c, ctx := s.connect()
	end, err := client.Each(ctx, c, methods.EventFollow, api.EventParams{}, func(api.EventNote) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	s.model.last = end.Last
	for i := range 4 {
		s.writers = append(s.writers, &writer{model: s.model, number: i, random: rand.New(rand.NewPCG(uint64(seed), uint64(100+i))), pattern: run.Spec})
	}
	for i, w := range s.writers {
		w.own = w.long(ctx, c, map[bool]agent.RestartPolicy{true: agent.RestartAlways}[i == 3])
	}
	s.look(true)
	return s
}

// realAgents: one in so many cycles starts agents, because a launch takes longer than the rest
// of a cycle.
const realAgents = 8

// longestLife is the longest time that cloved lives, enough for several answers.
func longestLife() time.Duration {
	if testhost.Lane() == testhost.LaneVM {
		return time.Second // without KVM an answer takes several times longer
	}
	return 40 * time.Millisecond
}

// cycle is one life of cloved.
func (s *storm) cycle(i int) {
	s.writers[0].agents = i%realAgents == 0
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	var clients, writers sync.WaitGroup
	for _, w := range s.writers {
		writers.Go(func() {
			c, err := client.Dial(ctx, s.socket)
			if err != nil {
				return
			}
			defer c.Close()
			w.work(ctx, c)
		})
	}
	clients.Go(func() {
		if c, err := client.Dial(ctx, s.socket); err == nil {
			defer c.Close()
			s.happened(ctx, c, true) // it ends with cloved
		}
	})
	asking, gaveUp := context.WithTimeout(ctx, patience())
	clients.Go(func() { writers.Wait(); gaveUp() })
	<-time.After(time.Duration(s.random.Int64N(int64(longestLife()))))
	s.acknowledged(asking, i+1)
	if i%40 == 39 {
		s.killSupervisor()
	}
	s.stop(unix.SIGKILL)
	cancel()
	clients.Wait()
	if i%5 == 4 {
		s.killEarly()
	}
	s.serve()
	s.look(i%50 == 0)
}

// killEarly kills a cloved that has not yet reported that it is ready.
func (s *storm) killEarly() {
	cmd := exec.Command(filepath.Join(s.bin, "cloved"), "--root", s.state, "--run-dir", s.run, "--config", s.config())
	if err := cmd.Start(); err != nil {
		s.t.Fatal(err)
	}
	<-time.After(time.Duration(s.random.IntN(60)) * time.Millisecond)
	cmd.Process.Kill()
	cmd.Wait()
}

// killSupervisor kills the supervisor of a long-lived agent and waits for its end: on a slow
// machine the next cloved may look before the kernel has closed the supervisor's files.
func (s *storm) killSupervisor() {
	w := s.writers[s.random.IntN(len(s.writers))]
	w.mu.Lock() // its writer may be sending a request
	p := w.own
	supervisor, restarts := p.supervisor, p.restarts
	spared := p.mortal && !restarts || supervisor == 0
	p.mortal = p.mortal || !spared
	w.mu.Unlock()
	if spared {
		return
	}
	s.buried++
	if err := unix.Kill(supervisor, unix.SIGKILL); err != nil && !restarts {
		s.t.Errorf("supervisor %d of %v: %v", supervisor, p.names, err)
	}
	awaitExit(s.t, supervisor)
}

// awaitDead waits for the records of agents whose supervisor was killed: where cleaning up
// takes long, cloved serves before it has ended.
func (s *storm) awaitDead(ctx context.Context, c *client.Client) {
	for _, w := range s.writers {
		if p := w.own; p.mortal && !p.restarts && !p.finished {
			_, _ = client.Do(ctx, c, methods.RunWait, api.RunParams{Run: string(p.id)}) // compare reports what is wrong with it
		}
	}
}

// look compares the new cloved's answers with the model; a deep look also reads the logs and
// runs clove check.
func (s *storm) look(deep bool) {
	s.t.Helper()
	c, ctx := s.connect()
	defer c.Close()
	s.awaitDead(ctx, c)
	listed, err := client.Collect(client.All(ctx, c, methods.RunList, api.ListParams{All: true}))
	if err != nil {
		s.t.Fatal(err)
	}
	runs := make([]agent.Run, len(listed))
	for i, one := range listed {
		runs[i] = one.Run
	}
	s.compare(runs)
	if _, err := s.happened(ctx, c, false); err != nil {
		s.t.Error(err)
	}
	s.everyEvent()
	if !deep {
		return
	}
	for _, w := range s.writers {
		if p := w.own; p.mortal && !p.restarts {
			w.own = w.long(ctx, c, "")
		} else if !p.restarts {
			s.readLog(ctx, c, p)
		}
		for _, p := range w.finished() {
			w.remove(ctx, c, p)
		}
	}
	if r := s.clove("check"); r.code != 0 {
		s.fault("check: %s", r.stdout)
	}
}

// readLog checks the log of an agent that writes numbers, and waits for one more number than
// last time.
func (s *storm) readLog(ctx context.Context, c *client.Client, p *promise) {
	enough := errors.New("enough")
	next := 0
	err := c.Logs(ctx, api.LogsParams{RunParams: api.RunParams{Run: string(p.id)}, Follow: true}, func(lines []api.LogLine) error {
		for _, line := range lines {
			if next++; line.Text != strconv.Itoa(next) {
				s.fault("line %d of %v is %q", next, p.names, line.Text)
				return enough
			}
			if next > p.lines {
				return enough
			}
		}
		return nil
	})
	if !errors.Is(err, enough) {
		s.fault("the log of %v: %v", p.names, err)
	}
	p.lines = next
}

// last ends everything as users would, and checks that nothing is left.
func (s *storm) last() {
	s.look(true)
	c, ctx := s.connect()
	for id, p := range s.runs {
		if err := client.Perform(ctx, c, methods.RunRemove, api.RemoveParams{RunParams: api.RunParams{Run: string(id)}, Force: true}); err != nil && agent.KindOf(err) != agent.KindNotFound {
			s.t.Errorf("cannot remove %v: %v", p.names, err)
		}
	}
	for _, dir := range []string{"logs", "layers"} {
		if left, _ := os.ReadDir(filepath.Join(s.state, dir)); len(left) > 0 {
			s.t.Errorf("%s holds %v", dir, left)
		}
	}
}

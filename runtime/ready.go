package runtime

import (
	"context"
	"fmt"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/store"
)

// readyEvery is between two questions whether an agent is ready.
const readyEvery = 500 * time.Millisecond

// AwaitReady returns when the agent is ready or has ended. One that is not ready in its time is
// ended with status policy-kill. With a command, that is asked again and again, one at a time; else
// the agent says so itself (agent.ready), which cloved stores.
func (l *Live) AwaitReady(ready agent.Ready) {
	late := time.AfterFunc(ready.Within, func() {
		if !l.isReady() {
			_ = l.EndBy(false, fmt.Sprintf("it was not ready within %s", ready.Within)) // one that has ended needs no end
		}
	})
	defer late.Stop()
	if len(ready.Command) == 0 {
		<-l.ended
		return
	}
	ask := time.NewTicker(readyEvery)
	defer ask.Stop()
	for !l.answersReady(ready) || l.setReady() != nil { // a store that fails is tried again
		select {
		case <-l.ended:
			return
		case <-ask.C:
		}
	}
}

// answersReady runs the command once. Its output is dropped.
func (l *Live) answersReady(ready agent.Ready) bool {
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		return false
	}
	defer null.Close()
	code, err := l.Exec(context.Background(), agent.Exec{Command: ready.Command, Timeout: ready.Within, KillRest: true}, IO{Stdin: null, Stdout: null, Stderr: null})
	return err == nil && code == 0
}

func (l *Live) setReady() error {
	return l.s.paths.withStore(func(s *store.Store) error {
		_, err := s.Amend(l.s.spec.ID, agent.RunReady, "", func(run *agent.Run) { run.SetReady(time.Now().UTC()) })
		return err
	})
}

// isReady reads whether the agent has said so. No agent is ended because the store cannot be read.
func (l *Live) isReady() (ready bool) {
	err := l.s.paths.withStore(func(s *store.Store) error {
		run, err := s.Get(string(l.s.spec.ID))
		ready = !run.Queue.Ready.IsZero()
		return err
	})
	return ready || err != nil
}

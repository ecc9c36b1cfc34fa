package main

import (
	"context"
	"fmt"
	"os/exec"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	cloveclient "clove.run/clove/client"
)

// starts measures the time from cloved's execution to its line "ready", and leaves it
// running.
func (d *cloved) starts(t *table) error {
	var took []float64
	for range 10 {
		if err := d.end(); err != nil {
			return err
		}
		began := time.Now()
		if err := d.serve(); err != nil {
			return err
		}
		took = append(took, millis(time.Since(began)))
	}
	t.several(fmt.Sprintf("start of cloved, %d records", records), unitMS, took, "100")
	return nil
}

// listings measures the whole command `clove ps`, start of the process included.
func (d *cloved) listings(t *table) error {
	for _, listing := range []struct {
		what  string
		flags []string
	}{{"clove ps, %d records", nil}, {"clove ps -a, %d rows", []string{"-a"}}} {
		var took []float64
		for range d.rounds {
			ps := exec.Command(d.clove, append([]string{"--root", d.state, "--run-dir", d.run, "ps"}, listing.flags...)...)
			began := time.Now()
			if _, err := ps.Output(); err != nil {
				return err
			}
			took = append(took, millis(time.Since(began)))
		}
		t.several(fmt.Sprintf(listing.what, records), unitMS, took, "50")
	}
	return nil
}

// callTime is how long each number of clients sends calls.
const callTime = 2 * time.Second

// calls counts how many run.get calls are answered in a second, for several numbers of
// clients.
func (d *cloved) calls(t *table) error {
	for _, clients := range []int{1, 8, 64} {
		rate, err := d.callRate(clients)
		if err != nil {
			return err
		}
		t.single(fmt.Sprintf("run.get, %d clients", clients), "", unitAnswers, rate, "")
	}
	return nil
}

// callRate lets each client send its next call when the answer to the last one has
// come.
func (d *cloved) callRate(clients int) (float64, error) {
	var answered atomic.Int64
	var all sync.WaitGroup
	failed := make(chan error, clients)
	began := time.Now()
	for range clients {
		c, err := d.dial() // a connection of its own
		if err != nil {
			return 0, err
		}
		all.Go(func() {
			defer c.Close()
			for time.Since(began) < callTime {
				if _, err := cloveclient.Do(context.Background(), c, methods.RunGet, api.RunParams{Run: "past-5000"}); err != nil {
					failed <- err
					return
				}
				answered.Add(1)
			}
		})
	}
	all.Wait()
	select {
	case err := <-failed:
		return 0, err
	default:
	}
	return float64(answered.Load()) / time.Since(began).Seconds(), nil
}

// eventRounds is how many events are timed.
const eventRounds = 50

// events measures the time from the call that causes an event until the last follower
// has received it.
func (d *cloved) events(t *table) error {
	c, err := d.dial()
	if err != nil {
		return err
	}
	defer c.Close()
	following, enough := context.WithCancel(context.Background())
	var all sync.WaitGroup
	defer all.Wait()
	defer enough()
	received := make(chan struct{}, subscribers)
	for range subscribers {
		all.Go(func() {
			_, _ = cloveclient.Each(following, c, methods.EventFollow, api.EventParams{What: []agent.RunEventKind{agent.RunRenamed}, After: new(uint64), Follow: true, Since: time.Now()}, func(api.EventNote) error {
				received <- struct{}{}
				return nil
			})
		})
	}
	var took []float64
	// Renaming causes an event without starting a process, whose time would be in the
	// measurement.
	name := "past-1"
	for round := range eventRounds + warmups {
		next := "renamed-" + strconv.Itoa(round)
		began := time.Now()
		if _, err := cloveclient.Do(context.Background(), c, methods.RunRename, api.RenameParams{RunParams: api.RunParams{Run: name}, Name: next}); err != nil {
			return err
		}
		for range subscribers {
			select {
			case <-received:
			case <-time.After(10 * time.Second):
				return fmt.Errorf("not every follower received of round %d", round)
			}
		}
		if name = next; round >= warmups {
			took = append(took, millis(time.Since(began)))
		}
	}
	t.several(fmt.Sprintf("event until the last of %d followers", subscribers), unitMS, took, "")
	return nil
}

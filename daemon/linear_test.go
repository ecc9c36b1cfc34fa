package daemon

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"sync"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/linear"
)

// rounds is how often the test runs, each time with another seed: once, or CLOVE_LINEAR_ROUNDS
// times in the long mode.
func rounds(t *testing.T) (number int, seed uint64) {
	text := os.Getenv("CLOVE_LINEAR_ROUNDS")
	if text == "" {
		return 1, 1
	}
	number, err := strconv.Atoi(text)
	must(t, err)
	return number, uint64(time.Now().UnixNano())
}

// The answers to sixty-four callers that compete for thirty-two names have one common order.
func TestAnswersHaveOneOrder(t *testing.T) {
	t.Parallel()
	a := newActors(t, nil)
	system := linear.Cloved{Client: a.serve(), Command: []string{"true"}}
	number, seed := rounds(t)
	operations := 10_000
	if testing.Short() {
		operations = 2_000
	}
	for round := range number {
		l := linear.Load{Workers: 64, Operations: operations, Groups: 16, Spec: spec, Seed: seed + uint64(round), Prefix: fmt.Sprintf("r%d-", round)}
		history, err := l.Run(context.Background(), system)
		if err == nil {
			err = linear.Check(history, patience)
		}
		if err != nil {
			t.Fatalf("seed %d: %v", l.Seed, err)
		}
	}
}

// hasty answers a removal before it is on disk.
type hasty struct {
	linear.Cloved
	late *sync.WaitGroup
}

func (h hasty) Remove(ctx context.Context, name string) error {
	result, err := h.Cloved.Get(ctx, name)
	if err != nil || result.State != agent.StateEnded {
		return h.Cloved.Remove(ctx, name)
	}
	h.late.Go(func() { _ = h.Cloved.Remove(context.Background(), name) })
	return nil
}

// The control: answers that come before the change is done have no common order.
func TestHastyAnswersHaveNoOrder(t *testing.T) {
	t.Parallel()
	a := newActors(t, nil)
	var late sync.WaitGroup
	operations := 800
	if testing.Short() { // the search for an order gets longer with their number
		operations = 400
	}
	system := hasty{linear.Cloved{Client: a.serve(), Command: []string{"true"}}, &late}
	history, err := linear.Load{Workers: 8, Operations: operations, Groups: 1, Spec: spec, Seed: 1}.Run(context.Background(), system)
	late.Wait()
	must(t, err)
	if err := linear.Check(history, patience); err == nil {
		t.Error("it was not noticed")
	}
}

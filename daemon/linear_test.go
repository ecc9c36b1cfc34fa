package daemon

import (
	"context"
	"os"
	"strconv"
	"testing"
	"time"

	"clove.run/clove/internal/linear"
)

// quarrel is what the test asks for; CLOVE_LINEAR_OPERATIONS makes it the long
// mode: so many for each of the 64 workers.
func quarrel(t *testing.T) linear.Load {
	l := linear.Load{Workers: 64, Operations: 10_000, Groups: 8, Spec: spec, Seed: 1}
	if text := os.Getenv("CLOVE_LINEAR_OPERATIONS"); text != "" {
		each, err := strconv.Atoi(text)
		must(t, err)
		l.Operations = l.Workers * each
		l.Seed = uint64(time.Now().UnixNano())
		t.Logf("%d operations, seed %d", l.Operations, l.Seed)
	}
	return l
}

// Sixty-four callers that quarrel over sixteen names see one cloved.
func TestAnswersHaveOneOrder(t *testing.T) {
	a := newActors(t, nil)
	c := a.serve()
	l := quarrel(t)
	history, err := l.Run(context.Background(), linear.Cloved{Client: c, Command: []string{"true"}})
	must(t, err)
	must(t, linear.Check(history, patience))
}

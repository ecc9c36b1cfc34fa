// Package starts says of what clove starts the next run by itself: the jobs of queues that have a manifest, and the
// names that mail wakes. Both have their starts in turns, and within the same bounds.
//
// It does not start runs (kernel/spawn), and does not know for what they are (kernel/jobs, kernel/names).
package starts

import (
	"cmp"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Bounds of the runs of one kind that do not execute yet. What waits in the queue of runs keeps others from starting,
// so few of a namespace do.
const (
	most        = 32
	ofNamespace = 2
)

// TryAgain is the time until a start that was refused is tried again.
const TryAgain = 5 * time.Second

// Pays is the namespace of an owner, which pays for a run.
type Pays struct {
	Owner     uint32
	Namespace string
}

// For is something for which runs are started.
type For interface {
	// Pays is that which pays.
	Pays() Pays
	// LastTurn is the number of its last start among those of its kind; 0: there was none.
	LastTurn() uint64
}

// Able are those of all that are ready, the one whose turn it is first: one of the namespace whose last start is the
// longest ago. pending are those that pay for runs of the kind which do not execute yet.
func Able[T For](all []T, pending []Pays, ready func(T) (bool, error)) (able []T, err error) {
	if len(pending) >= most {
		return nil, nil
	}
	waits, turns := map[Pays]int{}, map[Pays]uint64{}
	for _, of := range pending {
		waits[of]++
	}
	for _, one := range all {
		of := one.Pays()
		turns[of] = max(turns[of], one.LastTurn())
		if waits[of] >= ofNamespace {
			continue
		}
		is, err := ready(one)
		if err != nil {
			return nil, err
		}
		if is {
			able = append(able, one)
		}
	}
	slices.SortStableFunc(able, func(a, b T) int {
		return cmp.Or(cmp.Compare(turns[a.Pays()], turns[b.Pays()]), cmp.Compare(a.LastTurn(), b.LastTurn()))
	})
	return able, nil
}

// Turn is the number of the next start.
func Turn[T For](all []T) (next uint64) {
	for _, one := range all {
		next = max(next, one.LastTurn())
	}
	return next + 1
}

// Each has runs begun one at a time, each in a transaction of its own, until none is able. able is as the function of
// that name, and says when there is more; begin reports whether anything is changed. again is when there is more to
// do; zero: a change will bring it.
func Each[T For](e *service.Engine, what string, able func(*store.KernelTx, time.Time) ([]T, time.Time, error), begin func(*service.Call, T, *service.Outcome) (bool, error)) (again time.Time, err error) {
	for {
		var all []T
		err := e.Read(func(tx *store.KernelTx) (err error) {
			all, again, err = able(tx, e.Now())
			return err
		})
		if err != nil || len(all) == 0 {
			return again, err
		}
		begun := false
		err = e.Within(agent.Run{}, what, "", func(c *service.Call) (out service.Outcome, err error) {
			begun = false
			all, again, err = able(c.Tx, c.Now)
			for _, one := range all {
				if err != nil || begun {
					break
				}
				begun, err = begin(c, one, &out)
			}
			return out, err
		})
		if err != nil || len(all) == 0 {
			return again, err
		}
		if later := e.Now().Add(TryAgain); !begun && (again.IsZero() || later.Before(again)) {
			again = later
		}
		if !begun {
			return again, nil
		}
	}
}

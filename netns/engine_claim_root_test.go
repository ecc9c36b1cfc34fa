//go:build root

package netns

import (
	"errors"
	"fmt"
	"sync"
	"testing"

	"clove.run/clove/internal/ocitest"
)

// TestOfTwoAtOnceOneHolds: the others neither share the namespace nor remove its rules.
func TestOfTwoAtOnceOneHolds(t *testing.T) {
	prepare(t)
	network := ocitest.NewNetwork(t)
	const many = 16
	results, namespaces := make([]error, many), make([]*Namespace, many)
	var ready, done sync.WaitGroup
	ready.Add(many)
	for i := range many {
		n, err := OpenEngine(network.Path())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { n.Close() })
		plan, err := EnginePlan(n, true, fmt.Sprint(i), testPolicy)
		if err != nil {
			t.Fatal(err)
		}
		namespaces[i] = n
		done.Go(func() {
			ready.Done()
			ready.Wait()
			results[i] = plan.Apply(n)
		})
	}
	done.Wait()
	winner := -1
	for i, err := range results {
		switch {
		case err == nil && winner < 0:
			winner = i
		case !errors.Is(err, ErrRuled):
			t.Errorf("%d beside %d: %v", i, winner, err)
		}
	}
	if winner < 0 {
		t.Fatal("no owner's rules hold")
	}
	for i, n := range namespaces {
		if err := n.Clear(fmt.Sprint(i + many)); err != nil {
			t.Error(err)
		}
		if i == winner {
			continue
		}
		if err := n.Clear(fmt.Sprint(i)); err != nil {
			t.Error(err)
		}
	}
	if _, err := connect(t, namespaces[winner], ocitest.AllowedAddress+":80"); err == nil {
		t.Error("the rules do not hold")
	}
	if err := namespaces[winner].Clear(fmt.Sprint(winner)); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, namespaces[winner], ocitest.AllowedAddress+":80"); err != nil {
		t.Errorf("control: %v", err)
	}
}

// TestAnOwnersRulesAreCompleted: a guard that died half-way can begin again.
func TestAnOwnersRulesAreCompleted(t *testing.T) {
	prepare(t)
	w, network := engineWorld(t, true)
	if err := w.do(func() error { return removeRoutes() }); err != nil {
		t.Fatal(err)
	}
	if _, err := connect(t, w.Namespace, ocitest.OtherAddress+":80"); err == nil {
		t.Error("control: it came to the gate without its route")
	}
	w.hangUp()
	n, err := OpenEngine(network.Path())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { n.Close() })
	plan, err := EnginePlan(n, true, testOwner, testPolicy)
	if err != nil {
		t.Fatal(err)
	}
	if err := plan.Apply(n); err != nil {
		t.Fatal(err)
	}
	again := &world{Namespace: n}
	again.listen(t)
	if _, err := connect(t, n, ocitest.OtherAddress+":443"); err != nil {
		t.Error(err)
	}
}

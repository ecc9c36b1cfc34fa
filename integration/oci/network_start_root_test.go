//go:build root

package oci

import (
	"strconv"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/internal/ocitest"
)

// TestOfManyStartsAtOnceOneIsHeld: the others are refused, and neither their
// failure nor their removal takes its rules.
func TestOfManyStartsAtOnceOneIsHeld(t *testing.T) {
	n := newNode(t)
	n.serve()
	const many = 4
	results := make([]ocitest.Result, many)
	var ready, done sync.WaitGroup
	ready.Add(many)
	for i := range many {
		id := "many" + strconv.Itoa(i)
		n.Must("create", "--bundle", n.bundle(ocitest.ServerAddress, "exec sleep 1000", n.in(allowing(ocitest.AllowedAddress)...)), id)
		t.Cleanup(func() { n.Do("delete", "--force", id) })
		done.Go(func() {
			ready.Done()
			ready.Wait()
			results[i] = n.Do("start", id)
		})
	}
	done.Wait()
	var held string
	for i, got := range results {
		id := "many" + strconv.Itoa(i)
		switch {
		case got.Status == 0 && held == "":
			held = id
		case got.Status == 0 || !strings.Contains(got.Err, "rules of clove's hold there already"):
			t.Errorf("%s beside %q: %+v", id, held, got)
			fallthrough
		default:
			n.Must("delete", "--force", id)
		}
	}
	if held == "" {
		t.Fatal("none started")
	}
	fetches := fetcher(t, n, held)
	if got := fetches(ocitest.AllowedAddress); got != allowedSays {
		t.Errorf("%q", got)
	}
	if got := fetches(ocitest.OtherAddress); got != "" {
		t.Errorf("another: %q", got)
	}
	n.Must("delete", "--force", held)
	if n.ruled() {
		t.Error("the rules are left")
	}
}

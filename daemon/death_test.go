package daemon

import (
	"context"
	"testing"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
)

// TestServesWhileItCleansUp: a process that the kernel cannot kill delays the clean-up, but no
// caller.
func TestServesWhileItCleansUp(t *testing.T) {
	t.Parallel()
	r := newRig(t, nil)
	killed := make(chan struct{})
	r.cleaning = killed
	end := context.AfterFunc(within(t), func() { close(killed) })
	c := r.serve()
	_, err := client.Do(within(t), c, methods.RunStart, api.StartParams{Spec: spec("one")})
	must(t, err)
	if !end() {
		t.Fatal("cloved did not serve before everything was cleaned up")
	}
	close(killed)
}

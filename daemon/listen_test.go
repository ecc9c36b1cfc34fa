package daemon

import (
	"testing"
	"time"

	"clove.run/clove/agent"
)

// The lock of a cloved that died may outlive it for a moment, in a child that
// it was making. The control is a cloved that lives.
func TestLockWaitsAMoment(t *testing.T) {
	dir := t.TempDir()
	first, err := Lock(dir)
	must(t, err)
	_, err = Lock(dir)
	if agent.KindOf(err) != agent.KindBusy {
		t.Fatalf("control: %v", err)
	}
	time.AfterFunc(lockPatience/10, func() { first.Close() })
	second, err := Lock(dir)
	must(t, err)
	second.Close()
}

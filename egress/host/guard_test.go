package host

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/testhost"
	"clove.run/clove/netns"
)

// TestAGuardsGateHasBounds: the container's limits do not count what the gate has open.
func TestAGuardsGateHasBounds(t *testing.T) {
	t.Parallel()
	got := (&guard{}).config("", nil).Limits
	if got.Connections <= 0 || got.PerSecond <= 0 {
		t.Errorf("%+v", got)
	}
}

// TestSocketsOfTheGateBeforeAreAwaited: any other error is returned at once.
func TestSocketsOfTheGateBeforeAreAwaited(t *testing.T) {
	t.Parallel()
	taken, other := fmt.Errorf("cannot listen: %w", os.NewSyscallError("bind", unix.EADDRINUSE)), errors.New("another")
	var tries int
	answers := func(all ...error) func() ([]netns.Socket, error) {
		tries = 0
		return func() ([]netns.Socket, error) {
			tries++
			return []netns.Socket{{Port: uint16(tries)}}, all[min(tries, len(all))-1]
		}
	}
	sockets, err := listenOnceFree(answers(taken, taken, nil), testhost.Patience(time.Minute))
	if err != nil || tries != 3 || sockets[0].Port != 3 {
		t.Errorf("%v after %d: %v", sockets, tries, err)
	}
	if _, err := listenOnceFree(answers(other, nil), testhost.Patience(time.Minute)); err != other || tries != 1 {
		t.Errorf("after %d: %v", tries, err)
	}
	if _, err := listenOnceFree(answers(taken), 0); !errors.Is(err, unix.EADDRINUSE) || tries != 1 {
		t.Errorf("after %d: %v", tries, err)
	}
}

package host

import (
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/nsthread"
)

// TestOutsideMakesNoSocketAfterTheRun: a lookup that outlives its run needs a socket late.
func TestOutsideMakesNoSocketAfterTheRun(t *testing.T) {
	t.Parallel()
	thread, err := nsthread.Start(0)
	if err != nil {
		t.Fatal(err)
	}
	o := &outside{thread: thread}
	fd, err := o.socket(unix.AF_INET, unix.SOCK_DGRAM|unix.SOCK_CLOEXEC)
	if err != nil {
		t.Fatal(err)
	}
	unix.Close(fd)
	for range 2 { // the second call changes nothing
		if err := o.close(); err != nil {
			t.Error(err)
		}
	}
	if _, err := o.socket(unix.AF_INET, unix.SOCK_DGRAM); !errors.Is(err, errOutsideClosed) {
		t.Errorf("a socket: %v", err)
	}
	if _, err := o.listen(agent.PublishedPort{Host: netip.MustParseAddrPort("127.0.0.1:0"), Port: 80}); !errors.Is(err, errOutsideClosed) {
		t.Errorf("a listener: %v", err)
	}
	if _, err := o.dialer()(t.Context(), "udp", netip.MustParseAddrPort("127.0.0.1:53")); !errors.Is(err, errOutsideClosed) {
		t.Errorf("a question: %v", err)
	}
}

func TestRootsOutsideIsTheProcessItself(t *testing.T) {
	t.Parallel()
	o, err := newOutside(agent.Owner{})
	if err != nil || o.thread != nil || o.dialer() != nil {
		t.Errorf("%+v, %v", o, err)
	}
}

package netns

import (
	"errors"
	"fmt"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// TestWhatIsNotThereNeedsNoRemoval: a kernel without IPv6 returns another error for a rule of
// it than for a route. A rule or route that exists and cannot be removed is
// reported.
func TestWhatIsNotThereNeedsNoRemoval(t *testing.T) {
	t.Parallel()
	for errno, want := range map[unix.Errno]bool{
		unix.ENOENT: true, unix.ESRCH: true, unix.EAFNOSUPPORT: true, unix.EOPNOTSUPP: true,
		unix.EPERM: false, unix.EBUSY: false, unix.EINVAL: false,
	} {
		if got := absent(fmt.Errorf("netlink: %w", errno)); got != want {
			t.Errorf("%v: %v", errno, got)
		}
	}
}

// TestAKernelWithOneTableIsNamed: by the kernel option that it lacks.
func TestAKernelWithOneTableIsNamed(t *testing.T) {
	t.Parallel()
	var options []string
	for _, r := range (Plan{engine: true, everything: true, ipv6: true}).policyRoutes() {
		err := lacking(unix.EAFNOSUPPORT, r.option())
		if !errors.Is(err, unix.EAFNOSUPPORT) {
			t.Error(err)
		}
		options = append(options, err.Error())
	}
	if len(options) != 2 || !strings.Contains(options[0], "CONFIG_IP_MULTIPLE_TABLES") || !strings.Contains(options[1], "CONFIG_IPV6_MULTIPLE_TABLES") {
		t.Errorf("%q", options)
	}
}

package netns

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"testing"

	"golang.org/x/sys/unix"
)

func TestRouteQuestionIsWhatTheKernelParses(t *testing.T) {
	t.Parallel()
	for address, want := range map[string]struct {
		family byte
		length int
	}{"203.0.113.9": {unix.AF_INET, 4}, "2001:db8::9": {unix.AF_INET6, 16}} {
		m := routeQuestion(netip.MustParseAddr(address))
		if size := binary.NativeEndian.Uint32(m); int(size) != len(m) || len(m) != unix.SizeofNlMsghdr+unix.SizeofRtMsg+unix.SizeofRtAttr+want.length {
			t.Errorf("%s: %d bytes, said to be %d", address, len(m), size)
		}
		if m[16] != want.family || int(m[17]) != 8*want.length {
			t.Errorf("%s: family %d, %d bits", address, m[16], m[17])
		}
		if got, ok := netip.AddrFromSlice(m[len(m)-want.length:]); !ok || got.String() != address {
			t.Errorf("%s: asks for %s", address, got)
		}
	}
}

func TestRouteAnswers(t *testing.T) {
	t.Parallel()
	route := make([]byte, unix.SizeofNlMsghdr+unix.SizeofRtMsg)
	binary.NativeEndian.PutUint16(route[4:], unix.RTM_NEWROUTE)
	route[unix.SizeofNlMsghdr+7] = unix.RTN_LOCAL
	if kind, err := parseRouteType(route); err != nil || kind != unix.RTN_LOCAL {
		t.Errorf("a local route is %d, %v", kind, err)
	}
	refusal := make([]byte, unix.SizeofNlMsghdr+4)
	binary.NativeEndian.PutUint16(refusal[4:], unix.NLMSG_ERROR)
	errno := -int32(unix.ENETUNREACH)
	binary.NativeEndian.PutUint32(refusal[unix.SizeofNlMsghdr:], uint32(errno))
	if _, err := parseRouteType(refusal); !errors.Is(err, unix.ENETUNREACH) {
		t.Errorf("a refusal is %v", err)
	}
	for name, message := range map[string][]byte{"nothing": nil, "a head": route[:16], "a short route": route[:22], "something else": make([]byte, 32)} {
		if kind, err := parseRouteType(message); err == nil {
			t.Errorf("%s is taken for a route of type %d", name, kind)
		}
	}
}

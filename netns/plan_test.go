package netns

import (
	"errors"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
	"pgregory.net/rapid"
)

var update = flag.Bool("update", false, "write the golden files anew")

func TestPlanGoldens(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name   string
		config Config
		ipv6   bool
	}{
		{"nothing", Config{}, true},
		{"hostports", Config{HostPorts: []uint16{8080, 5432, 8080}}, true},
		{"everything", Config{Everything: true, HostPorts: []uint16{5432}}, true},
		{"everything_without_ipv6", Config{Everything: true, HostPorts: []uint16{5432}}, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := newPlan(c.config, c.ipv6).String()
			path := filepath.Join("testdata", c.name+".golden")
			if *update {
				if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(path)
			if err != nil || got != string(want) {
				t.Errorf("%v; %s says\n%s\nthe plan is\n%s", err, path, want, got)
			}
		})
	}
}

func TestWhatIsWithoutIPv6(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		content string
		want    bool
	}{{"0\n", true}, {"1\n", false}, {"", false}} {
		path := filepath.Join(t.TempDir(), "disable_ipv6")
		if err := os.WriteFile(path, []byte(c.content), 0o600); err != nil {
			t.Fatal(err)
		}
		if got := hasIPv6(path); got != c.want {
			t.Errorf("%q: %t", c.content, got)
		}
	}
	if hasIPv6(filepath.Join(t.TempDir(), "absent")) {
		t.Error("a host without the module has IPv6")
	}
}

func TestAMissingOptionIsNamed(t *testing.T) {
	t.Parallel()
	for _, errno := range []unix.Errno{unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT} {
		err := lacking(fmt.Errorf("conn.Receive: %w", errno), "CONFIG_NFT_TPROXY")
		if !errors.Is(err, errno) || !strings.Contains(err.Error(), "kernel option CONFIG_NFT_TPROXY") {
			t.Errorf("%v: %v", errno, err)
		}
	}
	// Control: a refusal is not a missing option, and EINVAL means one only in certain places.
	for _, errno := range []unix.Errno{unix.EPERM, unix.EINVAL} {
		if err := lacking(errno, "CONFIG_NFT_TPROXY"); err != errno {
			t.Errorf("%v became %v", errno, err)
		}
	}
	if err := lacking(unix.EINVAL, "CONFIG_NF_TABLES", unix.EINVAL); !strings.Contains(err.Error(), "CONFIG_NF_TABLES") {
		t.Errorf("EINVAL became %v", err)
	}
}

// TestAPrefixIsMatchedAsNetipDoes evaluates the expressions of a prefix on addresses.
func TestAPrefixIsMatchedAsNetipDoes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		length := rapid.SampledFrom([]int{4, 16}).Draw(t, "length")
		one, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "one"))
		other, _ := netip.AddrFromSlice(rapid.SliceOfN(rapid.Byte(), length, length).Draw(t, "other"))
		if one.Is4In6() || other.Is4In6() {
			t.Skip("no rule speaks of mapped addresses")
		}
		prefix := netip.PrefixFrom(one, rapid.IntRange(1, length*8).Draw(t, "bits"))
		for _, address := range []netip.Addr{one, other, prefix.Masked().Addr()} {
			if got := matches(addressIn(prefix, destination), address.AsSlice()); got != prefix.Contains(address) {
				t.Fatalf("%s in %s: %t", address, prefix, got)
			}
		}
	})
}

// matches evaluates the expressions as the kernel does, for one address.
func matches(expressions []expr.Any, address []byte) bool {
	var register []byte
	for _, e := range expressions[2:] { // after those for the IP version
		switch e := e.(type) {
		case *expr.Payload:
			register = slices.Clone(address[:e.Len])
		case *expr.Bitwise:
			for i := range register {
				register[i] &= e.Mask[i]
			}
		case *expr.Cmp:
			return slices.Equal(register, e.Data)
		}
	}
	return false
}

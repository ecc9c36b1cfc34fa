//go:build root

package oci

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/opencontainers/runtime-spec/specs-go"

	"clove.run/clove/agent"
	"clove.run/clove/internal/ocitest"
	"clove.run/clove/internal/testhost"
	"clove.run/clove/oci"
)

// bringing has the runtime move eth0 of its own network into the container's.
func bringing(s *specs.Spec) {
	s.Linux.NetDevices = map[string]specs.LinuxNetDevice{"eth0": {Name: "moved0"}}
}

// devices prints which of the two names exists, and reaches the other end.
var devices = tell("devices", "echo $(grep -o 'eth0\\|moved0' /proc/net/dev)") + tell("served", fetch(ocitest.ServerAddress, "80", "a"))

// doFrom is Do by an engine in that network instead of the machine's.
func doFrom(network *ocitest.Network, r *ocitest.Runtime, args ...string) (got ocitest.Result) {
	network.Do(func() error { got = r.Do(args...); return nil })
	return got
}

// hasDevice reports whether eth0 is still in a network, up and with its address.
func hasDevice(t *testing.T, network *ocitest.Network) (has bool) {
	t.Helper()
	network.Do(func() error {
		device, err := net.InterfaceByName("eth0")
		if err != nil {
			return nil // the error is the same for anything that does not exist
		}
		addresses, err := device.Addrs()
		for _, a := range addresses {
			has = has || device.Flags&net.FlagUp != 0 && strings.HasPrefix(a.String(), ocitest.InsideAddress+"/")
		}
		return err
	})
	return has
}

// TestANetworkDeviceIsMoved: with its address and to its new name, as runc does it. The
// control is the same container without the device.
func TestANetworkDeviceIsMoved(t *testing.T) {
	for _, name := range []string{"runc", "clove-oci"} {
		t.Run(name, func(t *testing.T) {
			r := ocitest.New(t, testhost.Binary(t, name))
			host := ocitest.NewNetwork(t)
			for _, row := range []struct {
				edits           []func(*specs.Spec)
				devices, served string
			}{
				{nil, "", ""},
				{[]func(*specs.Spec){bringing}, "moved0", "I am " + ocitest.ServerAddress},
			} {
				if !hasDevice(t, host) {
					t.Fatal("there is no device to move")
				}
				got := doFrom(host, r, "run", "--bundle", r.Bundle(devices, row.edits...), "one")
				if said := answers(got.Out); got.Status != 0 || said["devices"] != row.devices || said["served"] != row.served {
					t.Errorf("with %d devices: %+v", len(row.edits), got)
				}
			}
			if hasDevice(t, host) {
				t.Error("the device is still where it was")
			}
		})
	}
}

// TestNoDeviceIsBroughtIntoARuledNetwork: the rules would not apply to its traffic. It stays
// where it is, and no container is made. The control has no rules.
func TestNoDeviceIsBroughtIntoARuledNetwork(t *testing.T) {
	n := newNode(t)
	host := ocitest.NewNetwork(t)
	for name, annotations := range map[string][]string{
		"none":      {oci.AnnotationNetworkMode, agent.NetworkNone},
		"public":    {oci.AnnotationNetworkMode, agent.NetworkPublic},
		"allowlist": allowing(ocitest.AllowedAddress),
	} {
		got := doFrom(host, n.Runtime, "create", "--bundle", n.Bundle(devices, n.in(annotations...), bringing), "one")
		if got.Status != 1 || !strings.Contains(got.Err, "linux.netDevices would bring eth0") || !strings.Contains(got.Err, "omit one of the two") {
			t.Errorf("%s: %+v", name, got)
		}
		if _, err := os.Stat(filepath.Join(n.Root, "one")); !os.IsNotExist(err) || !hasDevice(t, host) {
			t.Errorf("%s: something was done: %v", name, err)
		}
	}
	got := doFrom(host, n.Runtime, "run", "--bundle", n.Bundle(devices, n.in(), bringing), "one")
	if said := answers(got.Out); got.Status != 0 || said["devices"] != "moved0 eth0" && said["devices"] != "eth0 moved0" {
		t.Errorf("without rules: %+v", got)
	}
}

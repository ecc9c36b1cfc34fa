package build

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// readCapabilities takes capabilities from root inside. Any other user has none.
func (b *builder) readCapabilities() error {
	for _, text := range b.asked.CapDrop {
		name := strings.ToUpper(text)
		if name != agent.AllCapabilities && !strings.HasPrefix(name, "CAP_") {
			name = "CAP_" + name
		}
		if name != agent.AllCapabilities && !slices.Contains(agent.Capabilities, name) {
			return invalid("cap-drop", "write ALL, or a name of capabilities(7) such as CHOWN", "%q is not a capability", text)
		}
		if !slices.Contains(b.spec.CapDrop, name) {
			b.spec.CapDrop = append(b.spec.CapDrop, name)
		}
	}
	return nil
}

// readHosts reads NAME:ADDRESS and NAME=ADDRESS; an IPv6 address may stand in brackets.
func (b *builder) readHosts() error {
	const hint = "write NAME:ADDRESS, for example db.example:10.0.0.5"
	for _, text := range b.asked.Hosts {
		// The first separator: an IPv6 address contains colons itself.
		cut := strings.IndexAny(text, ":=")
		if cut < 0 {
			return invalid("add-host", hint, "%q has no address", text)
		}
		name, shown := text[:cut], text[cut+1:]
		// docker's word for the host's address on its bridge.
		if shown == "host-gateway" {
			return invalid("add-host", "let the agent reach a port of the host's 127.0.0.1 with --host-port", "the host has no address inside the sandbox")
		}
		address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(shown, "["), "]"))
		if err != nil || address.Zone() != "" {
			return invalid("add-host", hint, "%q is not an address", shown)
		}
		if !agent.IsHostname(name) {
			return invalid("add-host", hint, "%q is not a host name", name)
		}
		b.spec.Hosts = append(b.spec.Hosts, agent.HostName{Name: name, Address: address})
	}
	return nil
}

// readStopSignal refuses KILL and STOP: no program can end by itself on them. To end it at
// once there is StopTimeout.
func (b *builder) readStopSignal() error {
	text := b.asked.StopSignal
	if text == "" {
		return nil
	}
	number, err := ParseSignal("stop-signal", text)
	if err == nil && (number == unix.SIGKILL || number == unix.SIGSTOP) {
		err = invalid("stop-signal", "to end it at once write --stop-timeout 0", "no program can catch %s", text)
	}
	b.spec.Limits.StopSignal = int(number)
	return err
}

package main

import (
	"net/netip"
	"slices"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
)

// readPrivileges reads what docker needs to be asked for and what clove holds anyway, and takes
// capabilities from root inside.
func (r *request) readPrivileges() error {
	if r.flags.IsSet(flagInit) && !r.flags.Bool(flagInit) {
		return invalid(flagInit, "leave the flag away", "every sandbox has a first process of clove's")
	}
	for _, text := range r.flags.StringSlice(flagOption) {
		switch key, value, _ := strings.Cut(strings.Replace(text, ":", "=", 1), "="); {
		case key == "no-new-privileges" && value != "false": // no agent can gain any
		case key == "seccomp":
			return invalid(flagOption, "write --"+flagSeccomp+" "+value, "the system call filter has a flag of its own")
		default:
			return invalid(flagOption, "only no-new-privileges is taken, which always holds; the walls of every agent are the same", "%q cannot be held", text)
		}
	}
	for _, text := range r.flags.StringSlice(flagCapDrop) {
		name := strings.ToUpper(text)
		if name != agent.AllCapabilities && !strings.HasPrefix(name, "CAP_") {
			name = "CAP_" + name
		}
		if name != agent.AllCapabilities && !slices.Contains(agent.Capabilities, name) {
			return invalid(flagCapDrop, "write ALL, or a name of capabilities(7) such as CHOWN", "%q is not a capability", text)
		}
		if !slices.Contains(r.spec.CapDrop, name) {
			r.spec.CapDrop = append(r.spec.CapDrop, name)
		}
	}
	return nil
}

// readHosts reads NAME:ADDRESS and NAME=ADDRESS; an IPv6 address may stand in brackets.
func (r *request) readHosts() error {
	const hint = "write NAME:ADDRESS, for example db.example:10.0.0.5"
	for _, text := range r.flags.StringSlice(flagAddHost) {
		cut := strings.IndexAny(text, ":=")
		if cut < 0 {
			return invalid(flagAddHost, hint, "%q has no address", text)
		}
		name, shown := text[:cut], text[cut+1:]
		if shown == "host-gateway" {
			return invalid(flagAddHost, "let the agent reach a port of the host's 127.0.0.1 with --"+flagHostPort, "the host has no address inside")
		}
		address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(shown, "["), "]"))
		if err != nil || address.Zone() != "" {
			return invalid(flagAddHost, hint, "%q is not an address", shown)
		}
		if !agent.IsHostname(name) {
			return invalid(flagAddHost, hint, "%q is not a host name", name)
		}
		r.spec.Hosts = append(r.spec.Hosts, agent.HostName{Name: name, Address: address})
	}
	return nil
}

// readStopSignal refuses what would leave the agent no time, and is --stop-timeout 0.
func (r *request) readStopSignal() error {
	text := r.flags.String(flagStopSignal)
	if text == "" {
		return nil
	}
	number, err := parseSignal(flagStopSignal, text)
	if err == nil && (number == unix.SIGKILL || number == unix.SIGSTOP) {
		err = invalid(flagStopSignal, "to end it at once write --"+flagStopTimeout+" 0", "no program can catch %s", text)
	}
	r.spec.Limits.StopSignal = int(number)
	return err
}

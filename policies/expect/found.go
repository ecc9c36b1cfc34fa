package expect

import (
	"net"
	"slices"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
	"clove.run/clove/policies/probe"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/runtime"
)

// Tries are the entries as the probe gets them. A system call that this machine does not
// have gets a number that no machine has.
func (d *Decider) Tries(entries []Entry) ([]probe.Try, error) {
	tries := make([]probe.Try, 0, len(entries))
	for i, e := range entries {
		kind, what := e.Action()
		try := probe.Try{Kind: string(kind), What: what, Args: e.Arguments()}
		switch kind {
		case Connect:
			to, err := resolve.ParseEndpoint(what)
			if err != nil {
				return nil, at(i, err)
			}
			try.What, try.UDP = net.JoinHostPort(to.Host, strconv.Itoa(int(to.Port))), to.Proto == egress.UDP
		case Syscall:
			try.Number = runtime.CallNumber(what)
		case Call: // not made: the probe asks for the grant that it needs
			all, err := named(what)
			if err != nil {
				return nil, at(i, err)
			}
			if len(all) != 1 {
				return nil, at(i, invalid("test it without --live", "%.64q is tried live only if it needs one grant", what))
			}
			try.Kind, try.What, _ = strings.Cut(all[0], ":")
		}
		tries = append(tries, try)
	}
	return tries, nil
}

// Found compares what a probe found with what was expected. The record is that of its run.
// Entries that the probe did not come to are Unknown.
func (d *Decider) Found(entries []Entry, found []probe.Found, record agent.Record) []Result {
	results := make([]Result, 0, len(entries))
	for i, e := range entries {
		if i >= len(found) {
			results = append(results, e.result(Unknown, "the probe did not come so far: "+ended(record)))
			continue
		}
		got, by := d.interpret(e, found[i], record.Denials)
		results = append(results, e.result(got, by))
	}
	return results
}

// ended is how a run ended in a few words.
func ended(record agent.Record) string {
	text := "its run is " + string(record.Status)
	if record.Signal != nil {
		text += " by " + *record.Signal
	}
	return text
}

func (d *Decider) interpret(e Entry, f probe.Found, denials []agent.Denial) (Answer, string) {
	kind, what := e.Action()
	switch {
	case f.Untried:
		return Unknown, "not tried: " + f.Detail
	case kind == Syscall:
		return d.called(what, e.Arguments(), f)
	case kind == Connect:
		return d.connected(what, f, denials)
	}
	return answerOf(f.Done), f.Detail
}

// called reports a call as refused that ends with the errno of a filter, or of the kernel
// where the agent lacks the privilege or the kernel the call.
func (d *Decider) called(name string, args [6]uint64, f probe.Found) (Answer, string) {
	refusals := []int{int(unix.EPERM), int(unix.ENOSYS)}
	if errno := d.prediction.Errno(name, args); errno != 0 {
		refusals = append(refusals, errno)
	}
	by := f.Detail
	if name := unix.ErrnoName(unix.Errno(f.Errno)); name != "" {
		by = name + ", " + by
	}
	return answerOf(f.Done && !slices.Contains(refusals, f.Errno)), by
}

// connected reports a connection as refused that the gate's record names, or that the
// sandbox does not let begin. A server that does not answer is no refusal.
func (d *Decider) connected(target string, f probe.Found, denials []agent.Denial) (Answer, string) {
	to, err := resolve.ParseEndpoint(target)
	if err != nil {
		return Unknown, err.Error()
	}
	for _, denial := range denials {
		if names(denial, to, f.Addresses) {
			return Deny, "refused by " + denial.Rule + "; " + f.Detail
		}
	}
	// Without a gate nothing is recorded: there is no way out, or only the agent's own loopback.
	local := !d.spec.Gated() && d.spec.Network != agent.NetworkHost
	refused := slices.Contains([]int{int(unix.EPERM), int(unix.EACCES), int(unix.ENOSYS), int(unix.ENETUNREACH)}, f.Errno)
	if !f.Done && (local || refused || loopback(to.Host)) {
		return Deny, f.Detail
	}
	if !f.Done {
		return Allow, "no rule refuses it; " + f.Detail
	}
	return Allow, f.Detail
}

func loopback(host string) bool {
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return host == "localhost" || ip != nil && ip.IsLoopback()
}

// names reports whether a denial is about an endpoint, by its name or one of the addresses
// that it has.
func names(denial agent.Denial, to resolve.Endpoint, addresses []string) bool {
	kind, target, _ := strings.Cut(denial.Target, "://")
	switch host := strings.ToLower(strings.TrimSuffix(strings.Trim(to.Host, "[]"), ".")); kind {
	case "dns":
		return target == host
	case "host-port":
		return strings.HasSuffix(target, ":"+strconv.Itoa(int(to.Port))) && loopback(host)
	case "gate":
		return true // without its gate the sandbox reaches nothing
	case string(to.Proto):
		return target == net.JoinHostPort(host, strconv.Itoa(int(to.Port))) || slices.Contains(addresses, target)
	}
	return denial.Target == "everything"
}

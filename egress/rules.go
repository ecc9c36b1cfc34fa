package egress

import (
	"errors"
	"fmt"
	"net/netip"
	"slices"

	"clove.run/clove/agent"
)

// Config is the input of New.
type Config struct {
	Mode      string             // one of agent.NetworkModes; "": allowlist where a rule allows something, else none
	Rules     []agent.EgressRule // in any order: deny beats allow
	HostPorts []uint16           // the ports of the host's loopback that the agent may reach
	// IsHost reports whether the host delivers an address to itself. Each decision calls
	// it, from many goroutines. nil: the host owns no address.
	IsHost func(netip.Addr) bool
	// User marks the rules of a user other than root: they never open metadata services or
	// the host's own addresses.
	User bool
}

// Rules decide. They are immutable, so any number of goroutines may use them.
//
// Whatever the rules say, they guarantee:
//   - Deny beats allow. A deny rule applies to every form of its target: to an address also
//     in NAT64, 6to4 and Teredo form.
//   - An address that is not public is allowed only by a rule that names it: the address
//     itself, a part of the special block that contains it, or its group. A name rule, or a
//     network that merely contains the block, does not allow it.
//   - Metadata services and this host's own addresses must be named by group or one by one,
//     loopback by --host-port.
//   - A name rule applies to addresses that were pinned for the name, and on ports 80 and
//     443 only if the client shows the name. A rule for @NAME does not ask for the name.
type Rules struct {
	mode      string // never ""
	deny      ruleSet
	allow     ruleSet
	hostPorts []*rule
	webDenies map[uint16]bool // ports 80 and 443, if some name is denied there
	order     []*rule         // all rules in order of evaluation, for Explain
	isHost    func(netip.Addr) bool
	user      bool
	forOne    bool
}

// ForOne is the rules as the answer about one connection: they are asked for it alone, and are not put in force.
func (r *Rules) ForOne() *Rules {
	one := *r
	one.forOne = true
	return &one
}

// AreForOne reports whether the rules are of one connection alone. No rules are not.
func (r *Rules) AreForOne() bool { return r != nil && r.forOne }

// rule is one agent.EgressRule after parsing.
type rule struct {
	Target
	text   string // Target.String()
	source string
	deny   bool
}

// ruleSet finds the rules that match without checking all of them. Names are in maps,
// because documents list hundreds. Groups and networks are checked one by one, because there
// are few.
type ruleSet struct {
	names    map[Name][]*rule
	wild     map[Name][]*rule // by the part after "*."
	prefixes []*rule
	groups   []*rule
}

// New parses rules, or says which rule is wrong and how to write it.
func New(config Config) (*Rules, error) {
	mode, err := modeOf(config)
	if err != nil {
		return nil, err
	}
	r := &Rules{mode: mode, isHost: config.IsHost, user: config.User}
	if r.isHost == nil {
		r.isHost = func(netip.Addr) bool { return false }
	}
	var allowed []*rule
	for _, given := range config.Rules {
		made, err := newRule(given)
		if err != nil {
			return nil, err
		}
		if made.deny {
			r.deny.add(made)
			r.order = append(r.order, made)
		} else if err := r.checkUser(made.Target, given); err != nil {
			return nil, err
		} else {
			r.allow.add(made)
			allowed = append(allowed, made)
		}
	}
	if err := r.addHostPorts(config.HostPorts); err != nil {
		return nil, err
	}
	// The order in which connect asks, which Explain shows.
	r.order = append(append(r.order, r.hostPorts...), allowed...)
	r.webDenies = map[uint16]bool{}
	for _, port := range webPorts {
		r.webDenies[port] = r.deny.hasName(covering(TCP, port))
	}
	if mode == agent.NetworkPublic {
		// The mode is one more rule, so that neither Explain nor the decisions need a special
		// case. It does not include UDP: the names in QUIC cannot be checked.
		public := &rule{Target: Target{proto: TCP, group: ClassPublic, ports: everyPort}, source: "mode public"}
		public.text = public.String()
		r.allow.add(public)
		r.order = append(r.order, public)
	}
	return r, nil
}

// modeOf also refuses rules that contradict the mode or would have no effect.
func modeOf(config Config) (string, error) {
	allow := slices.IndexFunc(config.Rules, func(given agent.EgressRule) bool { return !given.Deny })
	switch mode := config.Mode; {
	case mode == "" && allow >= 0:
		return agent.NetworkAllowlist, nil
	case mode == "":
		return agent.NetworkNone, nil
	case mode == agent.NetworkNone && allow >= 0:
		given := config.Rules[allow]
		return "", invalid(given.Source, fmt.Sprintf("cannot allow %s in mode none, which has no network", quote(given.Target)), "use mode allowlist")
	case mode == agent.NetworkHost && len(config.Rules) > 0:
		return "", invalid(config.Rules[0].Source, "cannot enforce rules in mode host, where nothing is between the agent and the network", "use mode allowlist or public")
	case mode == agent.NetworkHost && len(config.HostPorts) > 0:
		return "", invalid("--host-port", "mode host reaches every port of the host already", "use mode none or allowlist, or leave --host-port out")
	case slices.Contains(agent.NetworkModes, mode):
		return mode, nil
	}
	return "", invalid("--network", fmt.Sprintf("there is no mode %s", quote(config.Mode)), "use none, allowlist, public or host")
}

// newRule adds the source to the error, so that it names the flag.
func newRule(given agent.EgressRule) (*rule, error) {
	target, err := ParseTarget(given.Target)
	if err != nil {
		var known *agent.Error
		if errors.As(err, &known) {
			known.Step = given.Source
		}
		return nil, err
	}
	if given.Deny && target.any {
		return nil, invalid(given.Source, fmt.Sprintf("cannot deny %s: a deny rule takes a name or addresses", target), "write "+string(target.name)+", or the addresses")
	}
	if !given.Deny {
		if err := checkAllowed(target, given); err != nil {
			return nil, err
		}
	}
	return &rule{Target: target, text: target.String(), source: given.Source, deny: given.Deny}, nil
}

// checkAllowed refuses an allow rule without effect: loopback inside is the agent's own,
// and the host's loopback is reached with --host-port only.
func checkAllowed(t Target, given agent.EgressRule) error {
	loopback := t.name.IsLocalhost() ||
		(t.prefix.IsValid() && t.liesIn(ClassLoopback))
	if !loopback {
		return nil
	}
	hint := "--host-port N opens one port of the host's loopback at the agent's 127.0.0.1"
	if t.ports.first != 0 && t.ports.first == t.ports.last {
		hint = fmt.Sprintf("--host-port %d opens this port of the host's loopback at the agent's 127.0.0.1", t.ports.first)
	}
	return invalid(given.Source, fmt.Sprintf("cannot allow %s: inside the sandbox that is the agent itself", t), hint)
}

// rootOnly are the classes that no user's rule opens: they have credentials and the host's
// own services.
func rootOnly(class Class) bool { return class == ClassMetadata || class == ClassHost }

// checkUser refuses early a rule that allows would ignore. It cannot replace that check,
// because an address may become the host's later.
func (r *Rules) checkUser(t Target, given agent.EgressRule) error {
	if !r.user {
		return nil // and isHost cannot be called yet: a guard's namespace is opened later
	}
	class := t.group
	if t.prefix.IsValid() && t.prefix.IsSingleIP() {
		class = r.reach(t.prefix.Addr()).class
	}
	if !rootOnly(class) {
		return nil
	}
	return &agent.Error{Kind: agent.KindPrivilege, Step: given.Source, Message: fmt.Sprintf("cannot allow %s: %s", t, userDetails[class]), Hint: askRoot}
}

const askRoot = "ask root to start it"

var userDetails = map[Class]string{
	ClassMetadata: "only root's agents may reach a cloud's metadata service",
	ClassHost:     "only root's agents may reach an address of this host",
}

// allows returns the first rule that allows the address.
func (r *Rules) allows(at reach, fits func(*rule) bool) *rule {
	if r.user && rootOnly(at.class) {
		return nil
	}
	return r.allow.byAddress(at, fits)
}

// addHostPorts keeps these rules in a set of their own, so that no other rule or group can extend them.
func (r *Rules) addHostPorts(ports []uint16) error {
	for _, port := range ports {
		if port == 0 {
			return invalid("--host-port", "0 is no port", "write a port from 1 to 65535")
		}
		t := Target{proto: TCP, prefix: netip.PrefixFrom(hostLoopback, 32), ports: portRange{port, port}}
		r.hostPorts = append(r.hostPorts, &rule{Target: t, text: t.String(), source: "--host-port"})
	}
	return nil
}

func invalid(step, message, hint string) error {
	return &agent.Error{Kind: agent.KindInvalid, Step: step, Message: message, Hint: hint}
}

// add keeps the order of rules within a kind. The verdict names the first rule that fits.
func (s *ruleSet) add(r *rule) {
	if s.names == nil {
		s.names, s.wild = map[Name][]*rule{}, map[Name][]*rule{}
	}
	switch {
	case r.group != "":
		s.groups = append(s.groups, r)
	case r.wild:
		s.wild[r.name] = append(s.wild[r.name], r)
	case r.name != "":
		s.names[r.name] = append(s.names[r.name], r)
	default:
		s.prefixes = append(s.prefixes, r)
	}
}

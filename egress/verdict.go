package egress

import (
	"fmt"
	"strings"
)

// Verify is a condition that must be met before an allowed connection is made.
type Verify string

// The conditions.
const (
	VerifyNone Verify = ""     // none: connect
	VerifyMust Verify = "must" // the client must show a name; ask again with it
	VerifyDeny Verify = "deny" // the client may show no name, but not a denied one; ask again with what it showed
)

// The reasons. The set is closed: these, and the Class of an address that no rule allows
// ("private", "metadata", "loopback" …).
const (
	ReasonRule      = "rule"      // allowed by Rule
	ReasonHostMode  = "mode-host" // allowed: mode host makes no decisions
	ReasonDeny      = "deny"      // Rule denies it
	ReasonNoneMode  = "mode-none" // there is no network
	ReasonNoRule    = "no-rule"   // nothing allows it
	ReasonPort      = "port"      // something allows it, on another port or over another protocol
	ReasonRebinding = "rebinding" // an allowed name answers with an address that no rule names
	ReasonNoName    = "no-name"   // the rule is by name, and the client showed none
	ReasonMismatch  = "mismatch"  // the client showed a name that did not lead to this address
	ReasonInvalid   = "invalid"   // the question is not valid: a zone, port 0, an unknown protocol
)

// Verdict is the rules' answer to one question. The zero Verdict denies.
type Verdict struct {
	// Allowed is final only if Verify is VerifyNone. Otherwise the condition must be met too.
	Allowed bool   `json:"allowed"`
	Verify  Verify `json:"verify,omitempty"`
	Name    Name   `json:"name,omitempty"`   // the name that allowed it; "" if an address rule did
	Rule    string `json:"rule,omitempty"`   // canonical text of the deciding rule; "" if there is none
	Source  string `json:"source,omitempty"` // where that rule came from
	// Wide: Rule stands for names that it does not spell out, a wildcard or `public`, so that
	// what the agent asks for is of its own choice.
	Wide   bool   `json:"-"`
	Reason string `json:"reason"`
	Detail string `json:"detail,omitempty"` // why it was refused, one sentence without a full stop; "" where it was allowed
	Hint   string `json:"hint,omitempty"`   // how to allow it, mostly a flag
}

func allowedBy(r *rule, name Name) Verdict {
	return Verdict{Allowed: true, Name: name, Rule: r.text, Source: r.source, Wide: r.wild || r.group != "", Reason: ReasonRule}
}

// afterVerify adds a condition to the verdict.
func (v Verdict) afterVerify(verify Verify) Verdict {
	v.Verify = verify
	return v
}

// deniedBy suggests removing the rule, because no allow flag overrides it.
func deniedBy(r *rule, subject string) Verdict {
	return Verdict{Rule: r.text, Source: r.source, Reason: ReasonDeny,
		Detail: fmt.Sprintf("%s is denied by %s (%s)", subject, r.text, r.source),
		Hint:   fmt.Sprintf("take the deny rule %s (%s) away", r.text, r.source)}
}

func refused(reason, detail, hint string) Verdict {
	return Verdict{Reason: reason, Detail: detail, Hint: hint}
}

// allowFlag is the flag that allows one place; port 0 leaves the port out.
func allowFlag(proto Proto, place string, port uint16) string {
	var s strings.Builder
	s.WriteString("--allow ")
	if proto == UDP {
		s.WriteString("udp://")
	}
	s.WriteString(place)
	if port != 0 {
		fmt.Fprintf(&s, ":%d", port)
	}
	return s.String()
}

// anyFlag allows whatever is at the addresses of a name, for clients that show none.
func anyFlag(proto Proto, name Name, port uint16) string {
	return allowFlag(proto, Target{name: name, any: true}.place(), port)
}

// HintNoName is the flag that allows a connection whose client showed no name, or one that cannot
// be read; empty where no allowed name led to the target.
func (r *Rules) HintNoName(c Connection) string {
	for _, name := range c.Pinned {
		if r.allow.byName(name, covering(c.Proto, c.Target.Port())) != nil {
			return anyFlag(c.Proto, name, c.Target.Port())
		}
	}
	return ""
}

// classHint is the flag that allows an address of this class. For metadata services and the
// host it is the group, because their addresses are many or change.
func (r *Rules) classHint(at reach, proto Proto, port uint16) string {
	if r.user && (rootOnly(at.class) || at.class == ClassLoopback) {
		return askRoot
	}
	switch at.class {
	case ClassLoopback:
		if port == 0 {
			return "--host-port PORT"
		}
		return fmt.Sprintf("--host-port %d", port)
	case ClassMetadata, ClassHost:
		return allowFlag(proto, string(at.class), port)
	}
	return allowFlag(proto, at.place(), port)
}

// classDetails describe addresses that are refused because of their class alone.
var classDetails = map[Class]string{
	ClassPublic:        "no rule allows it",
	ClassPrivate:       "it is a private address",
	ClassCGNAT:         "it is an address of a provider's own network (CGNAT)",
	ClassHost:          "it is an address of this host",
	ClassLoopback:      "it is loopback, inside the sandbox the agent itself",
	ClassMetadata:      "it is a cloud's metadata service",
	ClassLinkLocal:     "it is a link-local address",
	ClassMulticast:     "it is a multicast address",
	ClassBroadcast:     "it is the broadcast address",
	ClassDocumentation: "it is an address for documentation",
	ClassReserved:      "it is a reserved address",
}

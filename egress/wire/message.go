package wire

import (
	"net/netip"
	"os"
)

// MaxMessageBytes bounds one message; the largest is a DNS answer of 64 KiB in
// base64.
const MaxMessageBytes = 96 << 10

// MaxFiles bounds the descriptors of one message (SCM_MAX_FD is 253).
const MaxFiles = 240

// Request is what the gate says: exactly one of the pointers is set. ID is the
// gate's own number for the answer, 0 where none is expected.
type Request struct {
	ID      uint64   `json:"id,omitempty"`
	Ready   *Ready   `json:"ready,omitempty"`
	Lookup  *Lookup  `json:"lookup,omitempty"`
	Open    *Open    `json:"open,omitempty"`
	Flow    *Flow    `json:"flow,omitempty"`
	Enter   *Enter   `json:"enter,omitempty"`
	Closed  *Closed  `json:"closed,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
}

// Ready says that the gate has dropped its privileges and serves.
type Ready struct{}

// Lookup asks for the answer to one DNS question of class IN.
type Lookup struct {
	Name string `json:"name"` // as egress.ParseName gives it; the broker checks again
	Type uint16 `json:"type"` // RFC 1035 and successors
}

// Open asks for a TCP connection to where the agent connected. It is asked
// without a name first; after an answer with Verify, once more with the name
// that the client showed.
type Open struct {
	Target netip.AddrPort `json:"target"`
	Name   string         `json:"name,omitempty"`
	Shown  Shown          `json:"shown,omitempty"`
}

// Shown says where a name was seen.
type Shown string

// The places that show a name, and what else the first bytes can be.
const (
	ShownTLS     Shown = "tls"     // server_name, RFC 6066 section 3
	ShownHTTP    Shown = "http"    // Host or absolute form, RFC 9112 section 3.2
	ShownNothing Shown = "nothing" // neither TLS nor HTTP, or silence
)

// Flow asks for a UDP flow between one socket of the agent and one target.
type Flow struct {
	Agent  netip.AddrPort `json:"agent"`
	Target netip.AddrPort `json:"target"`
}

// Enter asks for a connection to a port of the agent's loopback, on behalf of
// a host client of a published port.
type Enter struct {
	Port   uint16         `json:"port"` // inside
	Client netip.AddrPort `json:"client"`
}

// Closed says that a connection or flow that was answered with Number is over.
type Closed struct {
	Number  uint64 `json:"number"`
	RxBytes int64  `json:"rx_bytes"` // towards the agent
	TxBytes int64  `json:"tx_bytes"`
}

// Refused says that the gate itself turned something away, for the record.
type Refused struct {
	Target netip.AddrPort `json:"target"`
	Name   string         `json:"name,omitempty"`
	UDP    bool           `json:"udp,omitempty"`
	Reason Reason         `json:"reason"`
	// Count is how many refusals this stands for: those since the last message,
	// which may have had other targets.
	Count int64 `json:"count"`
}

// Reason is why the gate turned something away by itself.
type Reason string

// The gate's own reasons.
const (
	ReasonNoName      Reason = "no-name"     // the rule is by name, and the client showed none
	ReasonEncrypted   Reason = "encrypted"   // the hello hides its name (ECH)
	ReasonMalformed   Reason = "malformed"   // neither side could agree on what the first bytes say
	ReasonTooSlow     Reason = "too-slow"    // the first bytes did not come in time
	ReasonConnections Reason = "connections" // too many at once
	ReasonRate        Reason = "rate"        // too many new ones in a second
	ReasonBytes       Reason = "bytes"       // --net-bytes is used up
	ReasonQuery       Reason = "query"       // a DNS message that is no plain query
	ReasonProtocol    Reason = "protocol"    // neither TCP nor UDP
)

// Verdict is the broker's word on an Open, Flow, Enter or Lookup.
type Verdict string

// The verdicts.
const (
	VerdictAllowed     Verdict = "allowed"     // with the socket, or the DNS message
	VerdictVerify      Verdict = "verify"      // ask again with the name that the client shows
	VerdictVerifyDeny  Verdict = "verify-deny" // the same, but a client that shows no name may pass: ask again with ShownNothing
	VerdictDenied      Verdict = "denied"      // by a rule, or for want of one
	VerdictUnreachable Verdict = "unreachable" // allowed, but the dial failed
)

// Answer is what the broker says to the request with the same ID.
type Answer struct {
	ID      uint64  `json:"id,omitempty"`
	Setup   *Setup  `json:"setup,omitempty"` // only in the first message
	Verdict Verdict `json:"verdict,omitempty"`
	Number  uint64  `json:"number,omitempty"`  // of the connection or flow, for Closed
	Rule    string  `json:"rule,omitempty"`    // what decided, for people
	Hint    string  `json:"hint,omitempty"`    // how to ask for what was denied
	Message []byte  `json:"message,omitempty"` // to a Lookup: the whole DNS message, its ID 0
	// Files are the descriptors, in this order: to Open, the outside socket,
	// connected; to Flow, the outside socket and the inside one, both connected;
	// to Enter, the inside socket, connected; with Setup, see there. The
	// receiver owns them, the sender keeps its own.
	Files []*os.File `json:"-"`
}

// Setup is the gate's whole configuration.
type Setup struct {
	Listeners []Listener `json:"listeners"` // one descriptor each, in order
	Limits    Limits     `json:"limits"`
}

// ListenerKind says what a listening socket is for.
type ListenerKind string

// The kinds. All but ListenPublish and ListenHostPort are transparent sockets in
// the agent's namespace: the local address of what they accept is where the
// agent wanted to go.
const (
	ListenTCP      ListenerKind = "tcp"       // every TCP connection
	ListenUDP      ListenerKind = "udp"       // every datagram; IP_RECVORIGDSTADDR is on
	ListenDNSTCP   ListenerKind = "dns-tcp"   // port 53 of any address
	ListenDNSUDP   ListenerKind = "dns-udp"   // the same
	ListenPublish  ListenerKind = "publish"   // on the host; Port is the agent's
	ListenHostPort ListenerKind = "host-port" // on the agent's loopback; Port is the host's
)

// Listener describes one descriptor of Setup.
type Listener struct {
	Kind ListenerKind `json:"kind"`
	Port uint16       `json:"port,omitempty"`
}

// Limits are what the gate holds the agent to; the broker holds the same a
// second time. Zero means none.
type Limits struct {
	Connections int   `json:"connections"` // open at once, TCP and UDP flows together
	PerSecond   int   `json:"per_second"`  // new ones, with a burst of twice as many
	Bytes       int64 `json:"bytes"`       // both ways together, over the whole run
}

// The first Crowd connections have buffers that the kernel makes as large as
// their path wants (tcp(7)): up to 20 MB of kernel memory for one whose ends do
// not read, which no limit of the agent's counts and all TCP of the host shares
// (net.ipv4.tcp_mem). The buffers of those beyond are never larger than the
// kernel's first ones: CrowdBuffer, which it doubles.
const (
	Crowd       = 64
	CrowdBuffer = 64 << 10
)

package wire

import (
	"net/netip"
	"os"
	"time"
)

// Request is a message of the gate. Exactly one of the pointers is set. ID is the gate's
// number for the answer, 0 if it expects none.
type Request struct {
	ID      uint64   `json:"id,omitempty"`
	Ready   *Ready   `json:"ready,omitempty"`
	Lookup  *Lookup  `json:"lookup,omitempty"`
	Open    *Open    `json:"open,omitempty"`
	Flow    *Flow    `json:"flow,omitempty"`
	Enter   *Enter   `json:"enter,omitempty"`
	Closed  *Closed  `json:"closed,omitempty"`
	Refused *Refused `json:"refused,omitempty"`
	Held    *Held    `json:"held,omitempty"`
}

// Ready says that the gate has dropped its privileges and accepts connections.
type Ready struct{}

// Lookup requests the answer to one DNS question of class IN.
type Lookup struct {
	Name string `json:"name"` // in the form of egress.ParseName; the broker checks it again
	Type uint16 `json:"type"` // RFC 1035 and successors
}

// Open requests a TCP connection to the agent's destination. The first request is without a
// name. After ResultVerify or ResultVerifyDeny, the gate repeats it with the name that the
// client showed.
type Open struct {
	Target netip.AddrPort `json:"target"`
	Name   string         `json:"name,omitempty"`
	Shown  Shown          `json:"shown,omitempty"`
}

// Shown says where the name was found.
type Shown string

// The values of Shown.
const (
	ShownTLS     Shown = "tls"     // server_name, RFC 6066 section 3
	ShownHTTP    Shown = "http"    // Host or absolute form, RFC 9112 section 3.2
	ShownNothing Shown = "nothing" // neither TLS nor HTTP, or silence
)

// Flow requests a UDP flow between one socket of the agent and one target.
type Flow struct {
	Agent  netip.AddrPort `json:"agent"`
	Target netip.AddrPort `json:"target"`
}

// Enter requests a connection to a port of the agent's loopback, for a client on the host
// that connected to a published port.
type Enter struct {
	Port   uint16         `json:"port"` // inside
	Client netip.AddrPort `json:"client"`
}

// Closed reports the end of the connection or flow that an answer numbered Number.
type Closed struct {
	Number  uint64 `json:"number"`
	RxBytes int64  `json:"rx_bytes"` // towards the agent
	TxBytes int64  `json:"tx_bytes"`
}

// Refused reports something that the gate itself refused, for the record.
type Refused struct {
	Target netip.AddrPort `json:"target"`
	Name   string         `json:"name,omitempty"`
	UDP    bool           `json:"udp,omitempty"`
	Reason Reason         `json:"reason"`
	// Count is the number of refusals that this message stands for: all since the last
	// message, also of other targets.
	Count int64 `json:"count"`
}

// Held is sent about an Open or a Flow that has had no answer for a while: the broker looks whether its client is still
// there, and answers at once if not.
type Held struct {
	Of     uint64         `json:"of"` // the number of the request
	Client netip.AddrPort `json:"client"`
	Target netip.AddrPort `json:"target"`
	UDP    bool           `json:"udp,omitempty"`
	// Ended says that the client sends no more: it has closed its connection, or only its own direction.
	Ended bool `json:"ended,omitempty"`
}

// Reason says why the gate itself refused something.
type Reason string

// The gate's reasons.
const (
	ReasonNoName      Reason = "no-name"     // the rule is by name, and the client showed none
	ReasonEncrypted   Reason = "encrypted"   // the hello hides its name (ECH)
	ReasonHTTP2       Reason = "http2"       // HTTP/2 without TLS, whose names are in later frames
	ReasonTooLong     Reason = "too-long"    // the first bytes have no end within the gate's bound
	ReasonMalformed   Reason = "malformed"   // two parsers could find different names in the first bytes
	ReasonTooSlow     Reason = "too-slow"    // the first bytes did not come in time
	ReasonConnections Reason = "connections" // too many at once
	ReasonRate        Reason = "rate"        // too many new ones in a second
	ReasonBytes       Reason = "bytes"       // --net-bytes is used up
	ReasonQuery       Reason = "query"       // a DNS message that is no plain query
	ReasonProtocol    Reason = "protocol"    // neither TCP nor UDP
)

// Result is the broker's answer to Open, Flow, Enter or Lookup.
type Result string

// The results.
const (
	ResultAllowed     Result = "allowed"     // with the socket, or the DNS message
	ResultVerify      Result = "verify"      // ask again with the name that the client shows
	ResultVerifyDeny  Result = "verify-deny" // the same, but a client may also show no name: then ask again with ShownNothing
	ResultDenied      Result = "denied"      // by a rule, or because no rule allows it
	ResultUnreachable Result = "unreachable" // allowed, but the connection failed
)

// Answer is the broker's answer to the request with the same ID.
type Answer struct {
	ID      uint64 `json:"id,omitempty"`
	Setup   *Setup `json:"setup,omitempty"` // only in the first message
	Result  Result `json:"verdict,omitempty"`
	Number  uint64 `json:"number,omitempty"`  // of the connection or flow, for Closed
	Rule    string `json:"rule,omitempty"`    // what decided, for people
	Hint    string `json:"hint,omitempty"`    // how to allow what was denied
	Message []byte `json:"message,omitempty"` // to a Lookup: the whole DNS message, its ID 0
	Bytes   int64  `json:"bytes,omitempty"`   // to a Lookup: what question and answer used of Limits.Bytes
	// Files are descriptors, in this order. For Open: the outside socket, connected. For
	// Flow: the outside and the inside socket, both connected. For Enter: the inside
	// socket, connected. With Setup: the listeners. The receiver owns them; the sender
	// keeps its own.
	Files []*os.File `json:"-"`
}

// HoldMost bounds how long a connection may be held while people are asked about it.
const HoldMost = time.Hour

// Setup is the gate's whole configuration.
type Setup struct {
	Listeners []Listener `json:"listeners"` // one descriptor each, in order
	Limits    Limits     `json:"limits"`
}

// ListenerKind says what a listening socket is for.
type ListenerKind string

// The kinds. The first four are transparent sockets in the agent's namespace: the local
// address of an accepted connection is the agent's destination.
const (
	ListenTCP      ListenerKind = "tcp"       // every TCP connection
	ListenUDP      ListenerKind = "udp"       // every datagram; IP_RECVORIGDSTADDR is on
	ListenDNSTCP   ListenerKind = "dns-tcp"   // port 53 of any address
	ListenDNSUDP   ListenerKind = "dns-udp"   // the same
	ListenPublish  ListenerKind = "publish"   // on the host; Port is the agent's
	ListenHostPort ListenerKind = "host-port" // on the agent's loopback; Port is the host's
	// ListenCalls is no listener but the channel of the agent's calls (kernel/channel); IDs
	// are the agent's. ListenAgent, behind it, is the agent's own socket.
	ListenCalls ListenerKind = "agent-calls"
	ListenAgent ListenerKind = "agent-socket"
)

// Listener describes one descriptor of Setup.
type Listener struct {
	Kind ListenerKind `json:"kind"`
	Port uint16       `json:"port,omitempty"`
	IDs  *IDs         `json:"ids,omitempty"`
}

// IDs are the host's user ids of one sandbox.
type IDs struct {
	First uint32 `json:"first"`
	Count uint32 `json:"count"`
}

// Limits are enforced by the gate, and by the broker again. 0 means none.
type Limits struct {
	Connections int   `json:"connections"` // open at once, TCP and UDP flows together
	PerSecond   int   `json:"per_second"`  // new ones, with a burst of twice as many
	Bytes       int64 `json:"bytes"`       // both ways together, over the whole run
}

// The first LargeBuffers connections have buffers that the kernel sizes automatically
// (tcp(7)), up to 20 MB of kernel memory for one whose ends do not read. No cgroup limit of
// the agent's counts this memory, and all TCP of the host shares it (net.ipv4.tcp_mem).
// Further connections get buffers of SmallBufferBytes, the kernel's initial size, which
// setsockopt(2) doubles.
const (
	LargeBuffers     = 64
	SmallBufferBytes = 64 << 10
)

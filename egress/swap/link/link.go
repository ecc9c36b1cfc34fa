package link

import (
	"net/http"

	"clove.run/clove/secrets"
)

// Order is a message of clove. Exactly one field is set.
type Order struct {
	Outer   *Outer   `json:"outer,omitempty"`   // the first message to the one process
	Inner   *Inner   `json:"inner,omitempty"`   // the first message to the other, with the file of the system's authorities, PEM, if there is one
	Conn    *Conn    `json:"conn,omitempty"`    // with the agent's side of a connection, or with the socket to the server
	Values  bool     `json:"values,omitempty"`  // with a pipe of Values
	Verdict *Verdict `json:"verdict,omitempty"` // answers Use
}

// Outer has the outer process serve agents.
type Outer struct {
	Names []string `json:"names"`         // of the hosts, which the run's authority is for
	SSH   *IDs     `json:"ssh,omitempty"` // with a listener, at which these users of the host find an ssh agent
}

// IDs are users of the host.
type IDs struct {
	First uint32 `json:"first"`
	Count uint32 `json:"count"`
}

// Inner has the inner process make requests.
type Inner struct {
	Secrets []Secret `json:"secrets"`
}

// Secret is one that the run may use. Its value comes apart.
type Secret struct {
	Name        string        `json:"name"`
	Placeholder string        `json:"placeholder"`
	Terms       secrets.Terms `json:"terms"` // Normal
}

// Values are the values of secrets by their names, as JSON from a pipe whose other end the process that keeps them has.
type Values map[string]string

// ValuesBytes bounds Values in JSON.
const ValuesBytes = 1 << 20

// Conn is a connection of the agent to one of the hosts.
type Conn struct {
	Number uint64 `json:"number"`
	Name   string `json:"name"` // that the rules have allowed, and TLS has to show
	Port   uint16 `json:"port"`
}

// Verdict answers Use.
type Verdict struct {
	Number uint64 `json:"number"`
	Reason string `json:"reason,omitempty"` // why the secret may not be used; empty: it may
	Busy   bool   `json:"busy,omitempty"`   // it may be usable later
}

// Report is a message of one of the processes. Exactly one field is set.
type Report struct {
	Ready  *Ready  `json:"ready,omitempty"` // the first: it has no rights left
	Use    *Use    `json:"use,omitempty"`
	Denied *Denied `json:"denied,omitempty"`
	Served *Served `json:"served,omitempty"` // of the outer one
}

// Ready is the answer to Outer or Inner.
type Ready struct {
	CA []byte `json:"ca,omitempty"` // the outer one's authority, PEM
}

// Use asks whether a request may carry a secret.
type Use struct {
	Number uint64 `json:"number"` // the inner process's own
	Secret string `json:"secret"`
	Request
}

// Request names one in records: as the agent sent it, without its query.
type Request struct {
	Host   string `json:"host"` // with the port
	Method string `json:"method"`
	Path   string `json:"path"` // cut at PathMost
}

// PathMost bounds the path in a Request, in bytes.
const PathMost = 512

// Denied is a request that was refused, or from which a placeholder left as it was.
type Denied struct {
	Request
	Secret string `json:"secret,omitempty"`
	Reason Reason `json:"reason"`
	Detail string `json:"detail,omitempty"` // where the placeholder was, or the secret's name of a refusal
}

// Reason is why.
type Reason string

// The reasons.
const (
	ReasonRule    Reason = "rule"    // no rule allows the request
	ReasonForm    Reason = "form"    // servers could read the request differently
	ReasonName    Reason = "name"    // the request is for another host than the connection
	ReasonPlace   Reason = "place"   // the placeholder is not where the secret may be
	ReasonForeign Reason = "foreign" // the placeholder is of another run, or of a secret for other hosts
	ReasonUse     Reason = "use"     // the secret may not be used: expired, spent, refused
	ReasonCert    Reason = "certificate"
	ReasonTrust   Reason = "trust"  // the agent's program does not trust the run's authority
	ReasonClient  Reason = "client" // the server wants a certificate of its client
)

// Served counts what the outer process has answered.
type Served struct {
	Requests int64 `json:"requests"`
}

// ToInner is a message of the outer process. Exactly one field is set.
type ToInner struct {
	Await   *Await `json:"await,omitempty"`
	Request *Head  `json:"request,omitempty"` // with two pipes: the body to read, the answer to write
	Gone    uint64 `json:"gone,omitempty"`    // the number of a connection that the agent has ended
	Sign    *Sign  `json:"sign,omitempty"`
}

// Sign asks for the signature of an authentication over ssh. The inner process makes the text that is signed.
type Sign struct {
	Number  uint64 `json:"number"`
	Key     []byte `json:"key"`     // the public key, as ssh sends it
	Session []byte `json:"session"` // its identifier
	HostKey []byte `json:"host_key"`
	Proof   []byte `json:"proof"` // of the host: its signature over the identifier
	User    string `json:"user"`
	// Bound is of the method publickey-hostbound-v00@openssh.com.
	Bound     bool   `json:"bound,omitempty"`
	Algorithm string `json:"algorithm"`
}

// Await has the server of a connection met.
type Await struct {
	Number uint64 `json:"number"`
	HTTP2  bool   `json:"http2,omitempty"` // the agent's client speaks it
}

// RequestsMost bounds the requests under way at once.
const RequestsMost = 128

// ToOuter is a message of the inner process. Exactly one field is set.
type ToOuter struct {
	Met  *Met   `json:"met,omitempty"`
	Gone uint64 `json:"gone,omitempty"` // the number of a connection that the server has ended
	// Keys are the public keys of all ssh keys by their secrets, as ssh sends them: sent before the first Signed and when they change.
	Keys   map[string][]byte `json:"keys,omitempty"`
	Signed *Signed           `json:"signed,omitempty"`
}

// Signed answers Sign.
type Signed struct {
	Number    uint64 `json:"number"`
	Signature []byte `json:"signature,omitempty"` // as ssh sends it; empty: refused
}

// Met says how the inner process has met the server of a connection.
type Met struct {
	Number uint64 `json:"number"`
	HTTP2  bool   `json:"http2,omitempty"`
	Error  string `json:"error,omitempty"` // the server does not prove its name, or does not answer
}

// Head begins a request.
type Head struct {
	Conn   uint64      `json:"conn"`
	Method string      `json:"method"`
	Host   string      `json:"host"` // as the request has it
	Path   string      `json:"path"` // escaped, as the request has it
	Query  string      `json:"query,omitempty"`
	Header http.Header `json:"header"`
	Length int64       `json:"length"` // of the body; -1: not known
	// Upgrade says that the connection changes its protocol if the server agrees.
	Upgrade bool `json:"upgrade,omitempty"`
}

// Answer begins an answer.
type Answer struct {
	Status int         `json:"status"`
	Header http.Header `json:"header"`
	Length int64       `json:"length"` // -1: not known
}

// End ends a body. One without an End was broken off.
type End struct {
	Trailer http.Header `json:"trailer,omitempty"`
}

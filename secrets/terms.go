package secrets

import (
	"bytes"
	"errors"
	"fmt"
	"net/netip"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// Terms say what a secret is for.
type Terms struct {
	// Hosts are where it may go: NAME or NAME:PORT, of port 443 without one.
	Hosts []string `json:"hosts"`
	// Allow are the requests to these hosts that may pass (ParseRule); none: all.
	Allow []string `json:"allow,omitempty"`
	// Header is the one header that carries it; empty: Authorization.
	Header string `json:"header,omitempty"`
	// In are other places that may carry it: InBody, InURL.
	In []string `json:"in,omitempty"`
	// Prefix begins its placeholders, for programs that look at it, for example ghp_.
	Prefix string `json:"prefix,omitempty"`
	// Avoid are taints that an agent which uses it must not carry.
	Avoid []string `json:"avoid,omitempty"`
	// CA are certificates of authorities for its hosts in place of the system's, in PEM form. Root alone gives them.
	CA string `json:"ca,omitempty"`
	// SSH makes the value a private key, which signs authentications and is in no request; nil: the value is a text.
	SSH *SSH `json:"ssh,omitempty"`
	// Plain lets a run have the value in a file that its agent reads. Such a secret may be for no host.
	Plain bool `json:"plain,omitempty"`
}

// The elements of Terms.In.
const (
	InBody = "body" // of at most BodyMost bytes
	InURL  = "url"  // in the query
)

// BodyMost bounds a body in which a placeholder is replaced, in bytes: it is kept until its length is known.
const BodyMost = 1 << 20

// DefaultHeader carries a secret whose terms name no header.
const DefaultHeader = "Authorization"

const (
	hostsMost  = 16
	rulesMost  = 64
	prefixMost = 16
	caMost     = 32 << 10
	// ValueMost bounds a value, in bytes: common servers read no longer header.
	ValueMost = 8 << 10
	// ValueLeast is the shortest value, in bytes: a shorter one cannot be told from other text in an answer.
	ValueLeast = 8
)

// Normal are the terms in their one form: names in lower case with a port, the header as HTTP writes it.
func (t Terms) Normal() (Terms, error) {
	if len(t.Hosts) == 0 && !t.Plain || len(t.Hosts) > hostsMost {
		return t, fmt.Errorf("a secret has 1 to %d hosts", hostsMost)
	}
	var err error
	if t.Hosts, err = t.NormalHosts(); err != nil {
		return t, err
	}
	if t.SSH != nil {
		return t.normalSSH()
	}
	if len(t.Allow) > rulesMost {
		return t, fmt.Errorf("a secret has at most %d rules", rulesMost)
	}
	for _, text := range t.Allow {
		if _, err := ParseRule(text); err != nil {
			return t, err
		}
	}
	if t.Header == "" {
		t.Header = DefaultHeader
	}
	t.Header = canonicalHeader(t.Header)
	return t, t.check()
}

// NormalHosts are the hosts in their one form.
func (t Terms) NormalHosts() (hosts []string, err error) {
	port := defaultPort
	if t.SSH != nil {
		port = sshPort
	}
	for _, text := range t.Hosts {
		host, err := normalHost(text, port)
		if err != nil {
			return nil, err
		}
		hosts = append(hosts, host)
	}
	slices.Sort(hosts)
	return slices.Compact(hosts), nil
}

// framing are headers that say where a message ends or goes, which no secret may change.
var framing = []string{"Host", "Content-Length", "Transfer-Encoding", "Connection", "Upgrade", "Te", "Trailer", "Expect", "Accept-Encoding"}

func (t Terms) check() error {
	if strings.Trim(t.Header, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-") != "" || len(t.Header) > 64 || slices.Contains(framing, t.Header) {
		return fmt.Errorf("%.64q is no header that may carry a secret", t.Header)
	}
	for _, place := range t.In {
		if place != InBody && place != InURL {
			return fmt.Errorf("%.32q is no place of a secret: use %s or %s", place, InBody, InURL)
		}
	}
	if len(t.Prefix) > prefixMost || strings.Trim(t.Prefix, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_") != "" {
		return fmt.Errorf("the prefix of placeholders has letters, digits, - and _, at most %d", prefixMost)
	}
	if t.CA != "" && (!strings.Contains(t.CA, "-----BEGIN CERTIFICATE-----") || len(t.CA) > caMost) {
		return errors.New("the CA is no certificate in PEM form, which begins with -----BEGIN CERTIFICATE-----")
	}
	return nil
}

// normalHost is a host with its port, in lower case.
func normalHost(text, defaultPort string) (string, error) {
	name, port, named := strings.Cut(strings.ToLower(text), ":")
	if !named {
		port = defaultPort
	}
	n, err := strconv.ParseUint(port, 10, 16)
	if err != nil || n == 0 || !isName(name) {
		return "", fmt.Errorf("%.80q is no host: write a name, and :PORT for a port other than %s", text, defaultPort)
	}
	return name + ":" + strconv.FormatUint(n, 10), nil
}

// defaultPort is that of HTTPS.
const defaultPort = "443"

// SplitHost returns the name and the port of a host as Terms have it.
func SplitHost(host string) (name, port string) {
	if at := strings.LastIndexByte(host, ':'); at >= 0 {
		return host[:at], host[at+1:]
	}
	return host, defaultPort
}

// ShortHost is a host as people write it: without the port of HTTPS.
func ShortHost(host string) string { return strings.TrimSuffix(host, ":"+defaultPort) }

// canonicalHeader is a header's name as HTTP writes it: a capital letter at the beginning and behind each hyphen.
func canonicalHeader(name string) string {
	parts := strings.Split(strings.ToLower(name), "-")
	for i, part := range parts {
		if part != "" {
			parts[i] = strings.ToUpper(part[:1]) + part[1:]
		}
	}
	return strings.Join(parts, "-")
}

// isName reports whether text is a name of DNS with at least two labels, and no address.
func isName(text string) bool {
	labels := strings.Split(text, ".")
	if _, err := netip.ParseAddr(text); err == nil || len(text) > 253 || len(labels) < 2 {
		return false
	}
	for _, label := range labels {
		if label == "" || len(label) > 63 || strings.Trim(label, "abcdefghijklmnopqrstuvwxyz0123456789-") != "" || label[0] == '-' || label[len(label)-1] == '-' {
			return false
		}
	}
	return true
}

// CheckName refuses what is no name of a secret: letters, digits, and -, _ and . between them.
func CheckName(name string) error {
	if name == "" || len(name) > 64 || strings.Trim(name, "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_.") != "" || strings.ContainsAny(name[:1], "-.") {
		return fmt.Errorf("%.64q is no name of a secret: use letters, digits, - and _, at most 64", name)
	}
	return nil
}

// CheckValue refuses a value that a header cannot have, or that could not be found in an answer. What is in no request may be a text of
// lines. The error has nothing of the value.
func (t Terms) CheckValue(value []byte) error {
	switch {
	case len(value) < ValueLeast || len(value) > ValueMost:
		return fmt.Errorf("a secret has %d to %d bytes", ValueLeast, ValueMost)
	case t.SSH != nil, len(t.Hosts) == 0:
		if !utf8.Valid(value) || bytes.IndexByte(value, 0) >= 0 {
			return errors.New("a secret is text")
		}
	case slices.ContainsFunc(value, func(c byte) bool { return c < '!' || c > '~' }):
		return errors.New("a secret is one line of printable ASCII without spaces")
	}
	return nil
}

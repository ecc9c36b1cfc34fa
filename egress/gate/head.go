package gate

import (
	"bufio"
	"bytes"
	"errors"
	"net"
	"net/http"
	"net/netip"
	"net/textproto"
	"strconv"
	"strings"

	"clove.run/clove/egress/wire"
)

var endOfHead = []byte("\r\n\r\n")

// head reads the head of an HTTP request, if the bytes are one.
func (r *recorder) head(port uint16) opening {
	for {
		if !likeHTTP(r.seen) {
			return opening{reason: wire.ReasonNoName}
		}
		// One empty line before the request is ignored (RFC 9112 section 2.2).
		line := bytes.TrimPrefix(r.seen, []byte("\r\n"))
		if end := bytes.Index(line, endOfHead); end >= 0 {
			return judgeHead(line[:end+len(endOfHead)], port)
		}
		if err := r.more(); err != nil {
			reason := reasonOf(err)
			if reason == wire.ReasonNoName {
				reason = wire.ReasonMalformed // the client closed within the head
			}
			line, _ := firstLine(r.seen)
			return opening{reason: reason, http: reason == wire.ReasonTooLong && bytes.Contains(line, []byte(" HTTP/1."))}
		}
	}
}

// firstLine is the request line, where the bytes are a request, and whether all of it is there.
func firstLine(seen []byte) (line []byte, whole bool) {
	line, _, whole = bytes.Cut(bytes.TrimLeft(seen, "\r\n"), []byte("\n"))
	return line, whole
}

// likeHTTP reports whether some server could parse the bytes as a request, now or after
// more bytes. Because it decides what may pass without a name, it accepts more than the
// standard: any printable first line that contains "HTTP/".
func likeHTTP(seen []byte) bool {
	line, whole := firstLine(seen)
	for _, c := range bytes.TrimSuffix(line, []byte("\r")) {
		if c < ' ' && c != '\t' {
			return false
		}
	}
	return !whole || bytes.Contains(bytes.ToUpper(line), []byte("HTTP/"))
}

// judgeHead finds the name in a complete head.
func judgeHead(head []byte, port uint16) opening {
	malformed := opening{reason: wire.ReasonMalformed}
	// Before net/http, which accepts a bare LF as the end of a line.
	if !strictLines(head) {
		return malformed
	}
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return malformed
	}
	if request.Method == "PRI" { // HTTP/2 without TLS has its names in later frames, which the gate does not read
		return opening{reason: wire.ReasonHTTP2}
	}
	hosts, err := hostFields(head)
	// Servers differ in which host they take from two Host fields, from another version's
	// request, or from a target with user information.
	if err != nil || len(hosts) > 1 || request.ProtoMajor != 1 || request.URL.User != nil {
		return malformed
	}
	if request.URL.Scheme != "" && request.URL.Host == "" {
		return malformed // some servers take http:b.example/ for a path, others for a host
	}
	if request.URL.Host != "" {
		hosts = append(hosts, request.URL.Host)
	}
	return judgeHosts(hosts, port)
}

// strictLines reports whether every parser finds the same lines: CR LF ends a line and
// occurs nowhere else, and no line is folded (RFC 9112 sections 2.2 and 5.2).
func strictLines(head []byte) bool {
	if bytes.IndexByte(head, 0) >= 0 || bytes.ContainsAny(head[:1], " \t\r\n") {
		return false
	}
	for line := range bytes.SplitSeq(bytes.TrimSuffix(head, endOfHead), []byte("\r\n")) {
		if len(line) == 0 || line[0] == ' ' || line[0] == '\t' || bytes.ContainsAny(line, "\r\n") {
			return false
		}
	}
	return true
}

// hostFields returns the Host fields; net/http removes them from the request's header.
func hostFields(head []byte) ([]string, error) {
	reader := textproto.NewReader(bufio.NewReader(bytes.NewReader(head)))
	if _, err := reader.ReadLine(); err != nil {
		return nil, err
	}
	header, err := reader.ReadMIMEHeader()
	if err != nil {
		return nil, err
	}
	for name := range header {
		// For example "Host ": textproto keeps it as a different field, but a lenient
		// server takes it for Host (RFC 9112 section 5.1).
		if strings.ContainsFunc(name, notInToken) {
			return nil, errors.New("a field's name is no token")
		}
	}
	return header["Host"], nil
}

// notInToken is the complement of tchar, RFC 9110 section 5.6.2.
func notInToken(c rune) bool {
	return c <= ' ' || c > '~' || strings.ContainsRune("\"(),/:;<=>?@[\\]{}", c)
}

// judgeHosts requires that all hosts in the request are the same name, and that a port is
// the one that the client connected to.
func judgeHosts(hosts []string, port uint16) opening {
	found := opening{http: true, shown: wire.ShownHTTP}
	for i, host := range hosts {
		name, ok := hostName(host, port)
		if !ok || (i > 0 && !strings.EqualFold(name, found.name)) {
			return opening{http: true, reason: wire.ReasonMalformed}
		}
		found.name = name
	}
	if _, err := netip.ParseAddr(found.name); err == nil || found.name == "" {
		return opening{http: true, reason: wire.ReasonNoName} // an address is not a name
	}
	if !validName(found.name) {
		return opening{http: true, reason: wire.ReasonMalformed}
	}
	return found
}

// hostName removes the port from a host; false if it is a different port.
func hostName(host string, port uint16) (string, bool) {
	if strings.HasPrefix(host, "[") && strings.HasSuffix(host, "]") {
		return host[1 : len(host)-1], true
	}
	if !strings.Contains(host, ":") {
		return host, true
	}
	name, number, err := net.SplitHostPort(host)
	return name, err == nil && name != "" && number == strconv.Itoa(int(port))
}

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

// head reads a request's head, if the bytes are one.
func (r *recorder) head(port uint16) opening {
	for {
		if !likeHTTP(r.seen) {
			return opening{reason: wire.ReasonNoName}
		}
		if end := bytes.Index(r.seen, endOfHead); end >= 0 {
			return judgeHead(r.seen[:end+len(endOfHead)], port)
		}
		if err := r.more(); err != nil {
			reason := reasonOf(err)
			if reason == wire.ReasonNoName {
				reason = wire.ReasonMalformed // it ended within the head
			}
			return opening{reason: reason}
		}
	}
}

// likeHTTP is whether some server could take the bytes for a request, now or
// when more have come. It decides what may pass without a name, so it is wider
// than the standard: any printable first line that says HTTP somewhere.
func likeHTTP(seen []byte) bool {
	line, _, whole := bytes.Cut(bytes.TrimLeft(seen, "\r\n"), []byte("\n"))
	for _, c := range bytes.TrimSuffix(line, []byte("\r")) {
		if c < ' ' && c != '\t' {
			return false
		}
	}
	return !whole || bytes.Contains(bytes.ToUpper(line), []byte("HTTP/"))
}

// judgeHead finds the name in a whole head.
func judgeHead(head []byte, port uint16) opening {
	malformed := opening{reason: wire.ReasonMalformed}
	if !strictLines(head) {
		return malformed
	}
	request, err := http.ReadRequest(bufio.NewReader(bytes.NewReader(head)))
	if err != nil {
		return malformed
	}
	if request.Method == "PRI" { // HTTP/2 without TLS shows its names later, where nobody looks
		return opening{reason: wire.ReasonEncrypted}
	}
	hosts, err := hostFields(head)
	if err != nil || len(hosts) > 1 || request.ProtoMajor != 1 || request.URL.User != nil {
		return malformed
	}
	if request.URL.Scheme != "" && request.URL.Host == "" {
		return malformed // http:b.example/ is a path to some, and a host to others
	}
	if request.URL.Host != "" {
		hosts = append(hosts, request.URL.Host)
	}
	return judgeHosts(hosts, port)
}

// strictLines is whether every reader finds the same lines: CR LF ends one and
// stands nowhere else, none is folded (RFC 9112 sections 2.2 and 5.2).
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

// hostFields are the Host fields, which net/http takes out of the request's own
// header.
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
		// As "Host " would be: textproto keeps it as another field, a lenient
		// server may not (RFC 9112 section 5.1).
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

// judgeHosts wants all that the request says of its host to be one name, and
// its port to be the one that was connected to.
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
		return opening{http: true, reason: wire.ReasonNoName} // an address is no name
	}
	if !validName(found.name) {
		return opening{http: true, reason: wire.ReasonMalformed}
	}
	return found
}

// hostName takes the port off a host; false if it is another port.
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

//go:build root

package integration

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"time"
)

// hello describes how TLS begins. The certificate is never checked: only the reached server
// matters.
type hello struct {
	ServerName string
	Host       string // of the HTTP request that follows
	Shape      shape
	Encryption []byte // for shapeEncrypted: the server's ECHConfigList
}

type shape string

// The shapes of a ClientHello.
const (
	shapePlain     shape = ""
	shapeBytes     shape = "bytes"     // one segment for each byte
	shapeRecords   shape = "records"   // one TLS record for every 20 bytes
	shapeEncrypted shape = "encrypted" // ECH: the true name is encrypted, outerName is visible
	shapeLegacy    shape = "tls1.2"    // nothing newer is offered
	shapePadded    shape = "padded"    // with so many protocols that it needs several segments
)

// say begins TLS with address, requests / of Host, and returns the answer.
func (h *hello) say(address string, within time.Duration) (string, error) {
	raw, err := net.DialTimeout("tcp", address, within)
	if err != nil {
		return "", err
	}
	defer raw.Close()
	raw.SetDeadline(time.Now().Add(within))
	config := &tls.Config{ServerName: h.ServerName, InsecureSkipVerify: true}
	switch h.Shape {
	case shapeEncrypted:
		config.EncryptedClientHelloConfigList = h.Encryption
		config.MinVersion = tls.VersionTLS13
	case shapeLegacy:
		config.MaxVersion = tls.VersionTLS12
	case shapePadded:
		for i := range 400 {
			config.NextProtos = append(config.NextProtos, fmt.Sprintf("protocol-%04d", i))
		}
		config.NextProtos = append(config.NextProtos, "http/1.1")
	}
	conn := tls.Client(&reshaped{Conn: raw, shape: h.Shape}, config)
	if err := conn.Handshake(); err != nil {
		return "", err
	}
	return converse(conn, within, fmt.Appendf(nil, "GET / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", h.Host))
}

// reshaped changes the first write of a TLS client, its ClientHello.
type reshaped struct {
	net.Conn
	shape shape
	begun bool
}

func (r *reshaped) Write(p []byte) (int, error) {
	if r.begun {
		return r.Conn.Write(p)
	}
	r.begun = true
	var writes [][]byte
	switch r.shape {
	case shapeBytes:
		for i := range p {
			writes = append(writes, p[i:i+1])
		}
	case shapeRecords:
		for body := p[5:]; len(body) > 0; {
			size := min(len(body), 20)
			writes = append(writes, append(binary.BigEndian.AppendUint16(bytes.Clone(p[:3]), uint16(size)), body[:size]...))
			body = body[size:]
		}
	default:
		writes = [][]byte{p}
	}
	for _, part := range writes {
		if _, err := r.Conn.Write(part); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// helloBytes returns the ClientHello that a client would send for a name, as one record.
func helloBytes(name string) []byte {
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		tls.Client(client, &tls.Config{ServerName: name, InsecureSkipVerify: true}).Handshake() // returns when the pipe is closed
		client.Close()
	}()
	head := make([]byte, 5)
	if _, err := io.ReadFull(server, head); err != nil {
		panic(err)
	}
	body := make([]byte, binary.BigEndian.Uint16(head[3:]))
	if _, err := io.ReadFull(server, body); err != nil {
		panic(err)
	}
	return append(head, body...)
}

// record wraps bytes into one handshake record.
func record(body []byte) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{22, 3, 1}, uint16(len(body))), body...)
}

// withNames replaces the list of server names in a ClientHello, RFC 6066 section 3, and
// corrects every length that includes it.
func withNames(helloRecord []byte, was string, list []byte) []byte {
	body := bytes.Clone(helloRecord[5:])
	at := bytes.Index(body, []byte(was)) - 3 // type and length come before the name
	old := len(was) + 3
	grown := len(list) - old
	add := func(offset, bytes int) { // adds to a length field
		if bytes == 3 {
			offset++
		}
		binary.BigEndian.PutUint16(body[offset:], uint16(int(binary.BigEndian.Uint16(body[offset:]))+grown))
	}
	add(1, 3)    // of the message
	add(at-2, 2) // of the list
	add(at-4, 2) // of the extension
	add(extensionsAt(body), 2)
	return record(append(append(bytes.Clone(body[:at]), list...), body[at+old:]...))
}

// extensionsAt returns the offset of the length of all extensions.
func extensionsAt(body []byte) int {
	at := 4 + 2 + 32
	at += 1 + int(body[at])
	at += 2 + int(binary.BigEndian.Uint16(body[at:]))
	return at + 1 + int(body[at])
}

// nameEntry is one entry of the list.
func nameEntry(name string) []byte {
	return append(binary.BigEndian.AppendUint16([]byte{0}, uint16(len(name))), name...)
}

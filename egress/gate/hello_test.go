package gate

import (
	"bytes"
	"crypto/tls"
	"encoding/binary"
	"io"
	"net"
	"testing"
	"time"

	"clove.run/clove/egress/wire"
)

// onceConn returns its bytes and then the end of file.
type onceConn struct {
	net.Conn
	io.Reader
}

func once(data []byte) net.Conn { return onceConn{Reader: bytes.NewReader(data)} }

func (c onceConn) Read(p []byte) (int, error)      { return c.Reader.Read(p) }
func (c onceConn) SetReadDeadline(time.Time) error { return nil }

// helloOf returns the first flight of a client.
func helloOf(t testing.TB, config *tls.Config) []byte {
	t.Helper()
	client, server := net.Pipe()
	defer server.Close()
	go func() {
		_ = tls.Client(client, config).Handshake() // it fails when the pipe closes
		client.Close()
	}()
	header := make([]byte, 5)
	_, err := io.ReadFull(server, header)
	check(t, err)
	body := make([]byte, binary.BigEndian.Uint16(header[3:]))
	_, err = io.ReadFull(server, body)
	check(t, err)
	return append(header, body...)
}

// split puts the handshake message into records of n bytes.
func split(hello []byte, n int) []byte {
	var out []byte
	for body := hello[5:]; len(body) > 0; {
		part := body[:min(n, len(body))]
		out = append(out, hello[0], hello[1], hello[2], byte(len(part)>>8), byte(len(part)))
		out, body = append(out, part...), body[len(part):]
	}
	return out
}

// withExtension appends an extension to a ClientHello of one record.
func withExtension(hello []byte, kind uint16, data []byte) []byte {
	out := bytes.Clone(hello)
	at := 5 + 4 + 2 + 32                             // record, message, version, random
	at += 1 + int(out[at])                           // session
	at += 2 + int(binary.BigEndian.Uint16(out[at:])) // ciphers
	at += 1 + int(out[at])                           // compression
	grown := 4 + len(data)                           // one more extension
	add := func(at int) { binary.BigEndian.PutUint16(out[at:], binary.BigEndian.Uint16(out[at:])+uint16(grown)) }
	add(at)
	add(3)
	add(7) // the lower two of the message's three bytes of length
	out = binary.BigEndian.AppendUint16(out, kind)
	out = binary.BigEndian.AppendUint16(out, uint16(len(data)))
	return append(out, data...)
}

func TestHellos(t *testing.T) {
	t.Parallel()
	named := helloOf(t, &tls.Config{ServerName: "a.example"})
	serverName := func(name string) []byte {
		entry := binary.BigEndian.AppendUint16([]byte{0}, uint16(len(name)))
		entry = append(entry, name...)
		return append(binary.BigEndian.AppendUint16(nil, uint16(len(entry))), entry...)
	}
	bare := helloOf(t, &tls.Config{InsecureSkipVerify: true})
	for _, c := range []struct {
		name   string
		hello  []byte
		shows  string
		reason wire.Reason
	}{
		{"plain", named, "a.example", ""},
		{"old client", helloOf(t, &tls.Config{ServerName: "a.example", MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS10}), "a.example", ""},
		{"in records of 1 byte", split(named, 1), "a.example", ""},
		{"in records of 100 bytes", split(named, 100), "a.example", ""},
		{"upper case, added", withExtension(bare, 0, serverName("A.Example")), "A.Example", ""},
		{"with more behind it", append(bytes.Clone(named), helloOf(t, &tls.Config{ServerName: "b.example"})...), "a.example", ""},
		{"no name", bare, "", wire.ReasonNoName},
		{"two names", withExtension(named, 0, serverName("b.example")), "", wire.ReasonMalformed},
		{"final dot", withExtension(bare, 0, serverName("a.example.")), "", wire.ReasonMalformed},
		{"null byte", withExtension(bare, 0, serverName("a.example\x00.b.example")), "", wire.ReasonMalformed},
		{"fullwidth", withExtension(bare, 0, serverName("a\uff0eexample")), "", wire.ReasonMalformed},
		{"encrypted", withExtension(named, extensionECH, bytes.Repeat([]byte{0}, 40)), "", wire.ReasonEncrypted},
		{"encrypted, inner form", withExtension(named, extensionECH, []byte{1}), "", wire.ReasonEncrypted},
		{"encrypted, as in the drafts", withExtension(named, extensionESNI, []byte{1}), "", wire.ReasonEncrypted},
		{"encrypted, empty", withExtension(named, extensionECH, nil), "", wire.ReasonEncrypted},
		{"cut off", named[:len(named)-1], "", wire.ReasonMalformed},
		{"only a type", named[:1], "", wire.ReasonMalformed},
		{"another message", []byte{22, 3, 1, 0, 4, 2, 0, 0, 0}, "", wire.ReasonMalformed},
		{"an alert", []byte{22, 3, 1, 0, 0}, "", wire.ReasonMalformed},
	} {
		got := clientWaits().peek(once(c.hello), 443, false)
		if got.name != c.shows || got.reason != c.reason {
			t.Errorf("%s: name %q, reason %q; want %q, %q", c.name, got.name, got.reason, c.shows, c.reason)
		}
		if got.reason == "" && (!bytes.HasPrefix(c.hello, got.bytes) || got.shown != wire.ShownTLS) {
			t.Errorf("%s: %d bytes of %d, %s", c.name, len(got.bytes), len(c.hello), got.shown)
		}
	}
}

// FuzzHello: no bytes cause a panic, and no more is read than there is.
func FuzzHello(f *testing.F) {
	named := helloOf(f, &tls.Config{ServerName: "a.example"})
	f.Add(named)
	f.Add(split(named, 50))
	f.Add(withExtension(named, extensionECH, []byte{1}))
	f.Add(withExtension(named, 0, nil))
	f.Add(named[:60])
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || data[0] != recordTypeHandshake {
			return
		}
		got := clientWaits().peek(once(data), 443, false)
		if (got.name == "") == (got.reason == "") || len(got.bytes) > openingBytes || !bytes.HasPrefix(data, got.bytes) {
			t.Fatalf("%x: %+v", data, got)
		}
		if got.name != "" && !validName(got.name) {
			t.Fatalf("%x: name %q", data, got.name)
		}
	})
}

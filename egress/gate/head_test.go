package gate

import (
	"strings"
	"testing"

	"clove.run/clove/egress/wire"
)

func TestHeads(t *testing.T) {
	t.Parallel()
	const rest = "\r\nAccept: */*\r\n\r\n"
	for _, c := range []struct {
		head, name string
		reason     wire.Reason
	}{
		{"GET / HTTP/1.1\r\nHost: a.example" + rest, "a.example", ""},
		{"GET / HTTP/1.1\r\nhOST:\t A.Example. " + rest, "A.Example.", ""},
		{"GET / HTTP/1.0\r\nHost: a.example:80" + rest, "a.example", ""},
		{"GET http://a.example/x HTTP/1.1\r\nHost: a.example" + rest, "a.example", ""},
		{"GET http://a.example/ HTTP/1.1" + rest, "a.example", ""},
		{"GET http://a.example:80/ HTTP/1.1\r\nHost: A.EXAMPLE" + rest, "a.example", ""},
		{"CONNECT a.example:80 HTTP/1.1" + rest, "a.example", ""},
		{"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\n\r\nhello", "a.example", ""},
		// No name.
		{"GET / HTTP/1.0" + rest, "", wire.ReasonNoName},
		{"GET / HTTP/1.1\r\nHost:" + rest, "", wire.ReasonNoName},
		{"GET / HTTP/1.1\r\nHost: 192.0.2.1" + rest, "", wire.ReasonNoName},
		{"GET / HTTP/1.1\r\nHost: [2001:db8::1]:80" + rest, "", wire.ReasonNoName},
		{"GET / HTTP/1.1\r\nHost: [2001:db8::1]" + rest, "", wire.ReasonNoName},
		// Two different names.
		{"GET http://b.example/ HTTP/1.1\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"CONNECT b.example:80 HTTP/1.1\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example, b.example" + rest, "", wire.ReasonMalformed},
		{"GET http://a.example/ HTTP/1.1\r\nHost:" + rest, "", wire.ReasonMalformed},
		{"GET http:b.example/ HTTP/1.1\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"GET http:///b.example HTTP/1.1\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		// Ports.
		{"GET / HTTP/1.1\r\nHost: a.example:81" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example:080" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example:" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example:80:80" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: :80" + rest, "", wire.ReasonMalformed},
		{"CONNECT a.example:443 HTTP/1.1" + rest, "", wire.ReasonMalformed},
		// Spellings that another parser could take for another name.
		{"GET http://a.example@b.example/ HTTP/1.1\r\nHost: b.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example@b.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example/b.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example b.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a%2eexample" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a\uff0eexample" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: a.example\x00.b.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost : a.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nHost: " + strings.Repeat("a", 255) + rest, "", wire.ReasonMalformed},
		// Lines that another parser could split differently.
		{"GET / HTTP/1.1\r\nHost: a.example\r\n b.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\n Host: a.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nX: y\nHost: b.example\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\r\nX: y\rHost: b.example\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"GET / HTTP/1.1\nHost: b.example\n\nGET / HTTP/1.1\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"\r\nGET / HTTP/1.1\r\nHost: a.example" + rest, "a.example", ""}, // RFC 9112 section 2.2
		{"\r\n\r\nGET / HTTP/1.1\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"\nGET / HTTP/1.1\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"\r\nGET / HTTP/1.1\r\nHost: a.example\r\nHost: b.example" + rest, "", wire.ReasonMalformed},
		// Bodies that two parsers could end at different places.
		{"POST / HTTP/1.1\r\nHost: a.example\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\n", "", wire.ReasonMalformed},
		{"POST / HTTP/1.1\r\nHost: a.example\r\nTransfer-Encoding: chunked, identity\r\n\r\n", "", wire.ReasonMalformed},
		// Versions.
		{"GET / HTTP/2.0\r\nHost: a.example" + rest, "", wire.ReasonMalformed},
		{"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "", wire.ReasonHTTP2},
		// No HTTP at all.
		{"SSH-2.0-OpenSSH_9.2p1 Debian-2\r\n", "", wire.ReasonNoName},
		{"EHLO a.example\r\n", "", wire.ReasonNoName},
		{"\x00\x00\x00\x08\x04\xd2\x16\x2f", "", wire.ReasonNoName},
	} {
		r := &recorder{seen: []byte(c.head)}
		got := r.head(80)
		if got.name != c.name || got.reason != c.reason {
			t.Errorf("%q: name %q, reason %q; want %q, %q", c.head, got.name, got.reason, c.name, c.reason)
		}
	}
}

// FuzzHead: no bytes cause a panic, and a name is returned only if it is clean and in the
// head.
func FuzzHead(f *testing.F) {
	for _, seed := range []string{"GET / HTTP/1.1\r\nHost: a.example\r\n\r\n", "CONNECT a.example:80 HTTP/1.1\r\n\r\n",
		"GET http://a@b/ HTTP/1.1\r\nHost: b\r\n\r\n", "PRI * HTTP/2.0\r\n\r\n", "\x16\x03\x01", "SSH-2.0-x\r\n"} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 || len(data) > openingBytes {
			return
		}
		got := clientWaits().peek(once(data), 80, false)
		if (got.name == "") == (got.reason == "") {
			t.Fatalf("%q: %+v", data, got)
		}
		if got.name != "" && (!validName(got.name) || !strings.Contains(string(data), got.name)) {
			t.Fatalf("%q: name %q", data, got.name)
		}
		if string(got.bytes) != string(data[:len(got.bytes)]) {
			t.Fatal("the bytes changed")
		}
	})
}

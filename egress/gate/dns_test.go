package gate

import (
	"bytes"
	"encoding/binary"
	"net"
	"net/netip"
	"testing"
	"time"

	"clove.run/clove/egress/dnsmsg"
	"clove.run/clove/egress/wire"
)

var answerAddress = netip.MustParseAddr("192.0.2.7")

// resolving answers for a.example and denies all other names.
func resolving(r wire.Request) wire.Answer {
	if r.Lookup == nil || r.Lookup.Name != "a.example" {
		return wire.Answer{Result: wire.ResultDenied}
	}
	message, err := dnsmsg.NewReply("a.example.", r.Lookup.Type, 0).WithAddresses(time.Minute, answerAddress).Pack()
	if err != nil {
		panic(err)
	}
	return wire.Answer{Result: wire.ResultAllowed, Message: message}
}

func query(t testing.TB, name string) []byte {
	t.Helper()
	packet, err := dnsmsg.Question{Name: name, Type: dnsmsg.TypeA}.Pack(true)
	check(t, err)
	binary.BigEndian.PutUint16(packet, 0x4242)
	return packet
}

// rcode returns the response code and the answers of a packet.
func outcome(packet []byte) (rcode byte, answers int) {
	if len(packet) < 12 || packet[0] != 0x42 || packet[1] != 0x42 {
		return 0xff, 0
	}
	return packet[3] & 0xf, int(binary.BigEndian.Uint16(packet[6:]))
}

func dnsFront(t *testing.T) (*server, *fakeBroker, *net.UDPConn) {
	t.Helper()
	s, b := begin(t, wire.Limits{}, resolving)
	conn, err := net.ListenUDP("udp4", &net.UDPAddr{})
	check(t, err)
	check(t, wantDestination(conn))
	t.Cleanup(func() { conn.Close() })
	go s.serveDNS(conn)
	return s, b, conn
}

// TestTheAskedAddressAnswers: a connected client receives datagrams from that address only, so
// the answer comes from the query's target.
func TestTheAskedAddressAnswers(t *testing.T) {
	t.Parallel()
	_, b, front := dnsFront(t)
	for _, address := range []string{"127.0.0.1", "127.0.0.11", "127.9.8.7"} {
		client, err := net.DialUDP("udp4", nil, &net.UDPAddr{IP: net.ParseIP(address), Port: front.LocalAddr().(*net.UDPAddr).Port})
		check(t, err)
		defer client.Close()
		check(t, client.SetDeadline(time.Now().Add(patience)))
		for _, c := range []struct {
			packet  []byte
			rcode   byte
			answers int
		}{
			{query(t, "A.eXample."), dnsmsg.RCodeSuccess, 1},
			{query(t, "b.example."), dnsmsg.RCodeRefused, 0},
			{query(t, "a.example.")[:20], dnsmsg.RCodeFormatError, 0},
		} {
			_, err = client.Write(c.packet)
			check(t, err)
			reply := make([]byte, dnsmsg.MaxUDPBytes)
			n, err := client.Read(reply)
			check(t, err)
			if rcode, answers := outcome(reply[:n]); rcode != c.rcode || answers != c.answers {
				t.Errorf("%s: rcode %d, %d answers; want %d, %d", address, rcode, answers, c.rcode, c.answers)
			}
		}
	}
	if got := get(t, b.refused); got.Reason != wire.ReasonQuery || !got.UDP {
		t.Errorf("%+v", got)
	}
	if got := get(t, b.asked); *got.Lookup != (wire.Lookup{Name: "a.example", Type: dnsmsg.TypeA}) {
		t.Errorf("%+v", got.Lookup)
	}
}

func TestQueriesByTCP(t *testing.T) {
	t.Parallel()
	s, _ := begin(t, wire.Limits{}, resolving)
	near := dial(t, front(t, s, s.dnsConnection))
	buffer := make([]byte, dnsmsg.MaxTCPBytes)
	for range 3 {
		for name, want := range map[string]byte{"a.example.": dnsmsg.RCodeSuccess, "b.example.": dnsmsg.RCodeRefused} {
			if !writeMessage(near, query(t, name)) {
				t.Fatal("cannot write")
			}
			n, ok := readMessage(near, buffer)
			if rcode, _ := outcome(buffer[:n]); !ok || rcode != want {
				t.Errorf("%s: %v, rcode %d", name, ok, rcode)
			}
		}
	}
	_, err := near.Write([]byte{0xff, 0xff}) // longer than any query
	check(t, err)
	if n, err := near.Read(buffer); err == nil {
		t.Errorf("%d bytes, %v", n, err)
	}
}

func TestConnectionsForQueriesAreFew(t *testing.T) {
	t.Parallel()
	var few dnsConnections
	for range dnsStreams {
		if reason := few.admit(); reason != "" {
			t.Fatal(reason)
		}
	}
	if reason := few.admit(); reason != wire.ReasonConnections {
		t.Errorf("reason %q", reason)
	}
	few.release()
	if reason := few.admit(); reason != "" {
		t.Errorf("after one ended: %q", reason)
	}
}

// TestAFloodOfQueriesWaits: beyond the burst it is passed on at the rate only.
func TestAFloodOfQueriesWaits(t *testing.T) {
	t.Parallel()
	s, b := begin(t, wire.Limits{}, resolving)
	began := time.Now()
	target := netip.MustParseAddrPort("127.0.0.11:53")
	const more = 20
	for range queriesBurst + more {
		if !s.begin(target, true) {
			t.Fatal("the gate ended")
		}
		s.end()
	}
	if took := time.Since(began); took < more*time.Second/queriesPerSecond/2 {
		t.Errorf("%d queries took %s", queriesBurst+more, took)
	}
	if got := get(t, b.refused); got.Reason != wire.ReasonRate {
		t.Errorf("%+v", got)
	}
}

// FuzzQueries: the DNS path answers with the query's own id or not at all.
func FuzzQueries(f *testing.F) {
	f.Add(query(f, "a.example."))
	f.Add(query(f, "."))
	f.Add(query(f, "a.example.")[:13])
	f.Add([]byte{})
	f.Add(bytes.Repeat([]byte{0xc0, 0x0c}, 20))
	s := &server{refusals: newRefusals(nil)}
	f.Fuzz(func(t *testing.T, packet []byte) {
		if _, err := dnsmsg.ParseQuery(packet); err == nil {
			return // the next step is the broker's
		}
		reply := s.reply(packet, netip.AddrPort{}, true)
		if reply != nil && (len(packet) < 2 || !bytes.Equal(reply[:2], packet[:2]) || reply[2]&0x80 == 0) {
			t.Fatalf("%x is answered with %x", packet, reply)
		}
	})
}

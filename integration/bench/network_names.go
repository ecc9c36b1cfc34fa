package main

import (
	"errors"
	"fmt"
	"hash/fnv"
	"net"
	"net/netip"
	"strings"
	"sync"
	"time"

	"golang.org/x/net/dns/dnsmessage"
)

const (
	// questionsAtOnce is how many queries a busy program has under way.
	questionsAtOnce = 8
	questionTimeout = 5 * time.Second
	maxPlainBytes   = 512 // RFC 1035 section 2.3.4
	answerTTL       = 300
)

// resolve measures answers per second, of new names or of one that is known. New names
// differ in each round: a cache would answer them otherwise.
func (c *client) resolve(o order) ([]float64, error) {
	names := make(chan string, o.Questions)
	for i := range o.Questions {
		name := o.Name
		if name != siteName {
			name = fmt.Sprintf("q%s-%d.%s", o.Tag, i, o.Name)
		}
		names <- name
	}
	close(names)
	errs := make([]error, questionsAtOnce)
	var all sync.WaitGroup
	began := time.Now()
	for i := range errs {
		all.Go(func() {
			for name := range names {
				if _, err := c.lookUp(name); err != nil {
					errs[i] = err
				}
			}
		})
	}
	all.Wait()
	return []float64{float64(o.Questions) / time.Since(began).Seconds()}, errors.Join(errs...)
}

// lookUp asks for an address as a program's own resolver does: a socket of its own for
// each question.
func (c *client) lookUp(name string) (netip.Addr, error) {
	conn, err := net.Dial("udp", c.server)
	if err != nil {
		return netip.Addr{}, err
	}
	defer conn.Close()
	if err := conn.SetDeadline(time.Now().Add(questionTimeout)); err != nil {
		return netip.Addr{}, err
	}
	question, err := questionFor(name)
	if err != nil {
		return netip.Addr{}, err
	}
	if _, err := conn.Write(question); err != nil {
		return netip.Addr{}, err
	}
	buffer := make([]byte, maxPlainBytes)
	n, err := conn.Read(buffer)
	if err != nil {
		return netip.Addr{}, fmt.Errorf("cannot look up %s: %w", name, err)
	}
	return addressIn(buffer[:n])
}

// questionFor is a query for an IPv4 address. The id may be fixed, because each
// question has its own socket.
func questionFor(name string) ([]byte, error) {
	qname, err := dnsmessage.NewName(name + ".")
	if err != nil {
		return nil, err
	}
	m := dnsmessage.Message{Header: dnsmessage.Header{ID: 1, RecursionDesired: true},
		Questions: []dnsmessage.Question{{Name: qname, Type: dnsmessage.TypeA, Class: dnsmessage.ClassINET}}}
	return m.Pack()
}

func addressIn(message []byte) (netip.Addr, error) {
	var m dnsmessage.Message
	if err := m.Unpack(message); err != nil {
		return netip.Addr{}, err
	}
	for _, record := range m.Answers {
		if a, ok := record.Body.(*dnsmessage.AResource); ok {
			return netip.AddrFrom4(a.A), nil
		}
	}
	return netip.Addr{}, fmt.Errorf("an answer without an address (%s)", m.RCode)
}

// serveNames is the name server of the benchmark's network, until conn is closed.
func serveNames(conn net.PacketConn) {
	buffer := make([]byte, maxPlainBytes)
	for {
		n, from, err := conn.ReadFrom(buffer)
		if err != nil {
			return
		}
		if answer, err := answerTo(buffer[:n]); err == nil {
			_, _ = conn.WriteTo(answer, from) // if it is lost, the client asks again
		}
	}
}

// answerTo answers a query. Names that are only resolved get one of many addresses, so
// that no address collects thousands of names that a connection to it would be checked
// against.
func answerTo(message []byte) ([]byte, error) {
	var m dnsmessage.Message
	if err := m.Unpack(message); err != nil {
		return nil, err
	}
	if len(m.Questions) != 1 {
		return nil, errors.New("no single question")
	}
	q := m.Questions[0]
	answer := dnsmessage.Message{Header: dnsmessage.Header{ID: m.ID, Response: true, RecursionDesired: true, RecursionAvailable: true}, Questions: m.Questions}
	if q.Type == dnsmessage.TypeA {
		answer.Answers = []dnsmessage.Resource{{
			Header: dnsmessage.ResourceHeader{Name: q.Name, Class: dnsmessage.ClassINET, TTL: answerTTL},
			Body:   &dnsmessage.AResource{A: addressOf(q.Name.String()).As4()},
		}}
	}
	return answer.Pack()
}

// freshAddresses is the number of the server's addresses for new names, .64 to .127.
const freshAddresses = 64

// addressOf spreads new names over the addresses by a hash, so that a repeated query
// has the same answer.
func addressOf(name string) netip.Addr {
	if strings.EqualFold(name, siteName+".") {
		return netip.MustParseAddr(serverAddress)
	}
	h := fnv.New32a()
	h.Write([]byte(strings.ToLower(name)))
	address := netip.MustParseAddr(serverAddress).As4()
	address[3] = freshAddresses + byte(h.Sum32()%freshAddresses)
	return netip.AddrFrom4(address)
}

package main

import (
	"bufio"
	"bytes"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"sync"
	"time"
)

// order is what the client is told to do, one JSON object a line. The count that is set
// says which kind of measurement it is.
type order struct {
	Tag         string // makes names new in each round
	Address     string
	Name        string // shown in a TLS hello; with Lookup, the end of a name that is asked for first
	Connections int    // carry Bytes each
	Bytes       int64
	Times       int  // new connections, one after another
	Lookup      bool // look a new name up before each
	Denied      bool // each is to be refused
	Questions   int  // names to be resolved
}

// client does the same work whichever way its connections take.
type client struct {
	proxy  string // address; "": the client connects itself
	server string // for names, ADDRESS:PORT
}

func serveOrders(args []string, in io.Reader, out io.Writer) error {
	if len(args) != 2 {
		return errors.New("client wants a proxy and a name server")
	}
	c := &client{proxy: args[0], server: args[1]}
	return answerOrders(in, out, func(o order) (r report) {
		values, err := c.obey(o)
		if r.Values = values; err != nil {
			r.Error = err.Error()
		}
		return r
	})
}

// obey carries out one order.
func (c *client) obey(o order) ([]float64, error) {
	switch {
	case o.Connections > 0:
		return c.carry(o)
	case o.Questions > 0:
		return c.resolve(o)
	}
	if o.Name != "" && !o.Lookup && c.proxy == "" {
		// The gate allows an address only after it has answered a query for a name that
		// leads there.
		if _, err := c.lookUp(o.Name); err != nil {
			return nil, err
		}
	}
	var values []float64
	for i := range o.Times {
		took, err := c.once(o, i)
		if err != nil {
			return nil, err
		}
		values = append(values, float64(took)/float64(time.Microsecond))
	}
	return values, nil
}

// once measures one new connection, from connect(2) to the first byte of an answer.
func (c *client) once(o order, i int) (time.Duration, error) {
	if o.Denied {
		return c.denied(o.Address)
	}
	name := o.Name
	if o.Lookup {
		name = fmt.Sprintf("r%s-%d.%s", o.Tag, i, o.Name)
	}
	first := []byte{opRead}
	if name != "" {
		var err error
		if first, err = hello(name); err != nil {
			return 0, err
		}
	}
	began := time.Now()
	conn, err := c.reach(o, name)
	if err != nil {
		return 0, err
	}
	defer conn.Close()
	if _, err := conn.Write(first); err != nil {
		return 0, err
	}
	if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
		return 0, err
	}
	took := time.Since(began)
	// The end of this connection must not overlap with the beginning of the next.
	if err := conn.CloseWrite(); err != nil {
		return 0, err
	}
	_, err = io.Copy(io.Discard, conn)
	return took, err
}

// reach connects as a program would: a proxy is given the name and resolves it itself.
func (c *client) reach(o order, name string) (*net.TCPConn, error) {
	address := o.Address
	if o.Lookup {
		address = name + ":" + portByName
		if c.proxy == "" {
			found, err := c.lookUp(name)
			if err != nil {
				return nil, err
			}
			address = found.String() + ":" + portByName
		}
	} else if name != "" && c.proxy != "" {
		address = name + ":" + portByName
	}
	return c.connect(address)
}

// connect takes the client's way: its own connection, or a proxy's tunnel.
func (c *client) connect(address string) (*net.TCPConn, error) {
	if c.proxy == "" {
		return dialTCP(address)
	}
	conn, status, err := c.tunnel(address)
	if err == nil && status != http.StatusOK {
		conn.Close()
		err = fmt.Errorf("the proxy answers %d", status)
	}
	return conn, err
}

func dialTCP(address string) (*net.TCPConn, error) {
	to, err := net.ResolveTCPAddr("tcp", address)
	if err != nil {
		return nil, err
	}
	return net.DialTCP("tcp", nil, to)
}

// tunnel asks the proxy for a connection to address, RFC 9110 section 9.3.6.
func (c *client) tunnel(address string) (*net.TCPConn, int, error) {
	conn, err := dialTCP(c.proxy)
	if err != nil {
		return nil, 0, err
	}
	if _, err := fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address); err != nil {
		conn.Close()
		return nil, 0, err
	}
	// The reader may read more than the head. Nothing is lost: the server sends nothing
	// before it is asked.
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		conn.Close()
		return nil, 0, err
	}
	return conn, response.StatusCode, nil
}

// denied measures the time until a connection is refused.
func (c *client) denied(address string) (time.Duration, error) {
	began := time.Now()
	if c.proxy != "" {
		conn, status, err := c.tunnel(address)
		took := time.Since(began)
		if err != nil {
			return 0, err
		}
		conn.Close()
		if status == http.StatusOK {
			return 0, errors.New("the proxy lets through what it should deny")
		}
		return took, nil
	}
	conn, err := dialTCP(address)
	if err == nil { // the gate accepts first and resets then
		_, err = conn.Read(make([]byte, 1))
		conn.Close()
	}
	took := time.Since(began)
	if err == nil || errors.Is(err, io.EOF) {
		return 0, errors.New("a connection that should be denied is not refused")
	}
	return took, nil
}

// hello is a TLS hello that contains name. It is made by the TLS library, so that a
// gate that parses it sees what real clients send.
func hello(name string) ([]byte, error) {
	var sent bytes.Buffer
	conn := tls.Client(recording{into: &sent}, &tls.Config{ServerName: name})
	if err := conn.Handshake(); sent.Len() == 0 {
		return nil, fmt.Errorf("cannot make a hello: %w", err)
	}
	return sent.Bytes(), nil
}

// recording is a connection that keeps the first bytes of a TLS client and answers
// nothing.
type recording struct {
	net.Conn
	into *bytes.Buffer
}

func (r recording) Write(p []byte) (int, error) { return r.into.Write(p) }
func (recording) Read([]byte) (int, error)      { return 0, io.EOF }
func (recording) Close() error                  { return nil }

// carry fetches bytes over several connections. All of them are established before the
// first transfer, so that only the transfer is measured.
func (c *client) carry(o order) ([]float64, error) {
	conns := make([]*net.TCPConn, 0, o.Connections)
	defer func() {
		for _, conn := range conns {
			conn.Close()
		}
	}()
	for range o.Connections {
		conn, err := c.connect(o.Address)
		if err != nil {
			return nil, err
		}
		// One byte there and back shows that the server has the connection: the gate
		// accepts before it has connected.
		conns = append(conns, conn)
		if _, err := conn.Write([]byte{opRead}); err != nil {
			return nil, err
		}
		if _, err := io.ReadFull(conn, make([]byte, 1)); err != nil {
			return nil, err
		}
	}
	began := time.Now()
	errs := make([]error, len(conns))
	var all sync.WaitGroup
	for i, conn := range conns {
		all.Go(func() { errs[i] = fetch(conn, o.Bytes) })
	}
	all.Wait()
	rate := float64(o.Bytes*int64(o.Connections)) / (1 << 20) / time.Since(began).Seconds()
	return []float64{rate}, errors.Join(errs...)
}

// fetchBytes is how much a program that has much to read usually reads at once.
const fetchBytes = 256 << 10

// fetch asks for size bytes and reads them.
func fetch(conn *net.TCPConn, size int64) error {
	if _, err := conn.Write(requestFor(size)); err != nil {
		return err
	}
	buffer := make([]byte, fetchBytes)
	for size > 0 {
		n, err := conn.Read(buffer)
		if size -= int64(n); err != nil && size > 0 {
			return fmt.Errorf("%d bytes did not come: %w", size, err)
		}
	}
	return nil
}

// clientMain is main of this binary in the role of a client.
func clientMain(args []string) error { return serveOrders(args, os.Stdin, os.Stdout) }

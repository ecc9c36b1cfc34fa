//go:build root

package integration

import (
	"bufio"
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/netip"
	"strconv"
	"sync"

	"clove.run/clove/internal/nsthread"
)

// reached is part of every answer of a server of the test network, and of no answer of a gate.
const reached = "REACHED"

// serve starts every server of the test network, and those of the host itself.
func (n *internet) serve() error {
	n.webPages()
	var errs []error
	for _, thread := range []*nsthread.Thread{n.there, n.here} {
		errs = append(errs,
			n.serveWeb(thread, ":80", nil),
			n.serveWeb(thread, ":443", serverTLS()),
			n.serveTCP(thread, ":7", echo),
			n.serveTCP(thread, ":22", greet("SSH-2.0-"+reached)),
			n.serveTCP(thread, ":25", greet("220 "+reached+" ready")),
			n.serveTCP(thread, ":5432", postgres))
	}
	for _, address := range []string{siteAddress, siteAddress6, otherAddress, evilAddress, lanAddress, metadataAddress} {
		for _, port := range []string{"7", "443"} {
			errs = append(errs, n.serveUDP(n.there, net.JoinHostPort(address, port)))
		}
	}
	for _, address := range []string{ownAddress, "127.0.0.1"} {
		errs = append(errs, n.serveUDP(n.here, net.JoinHostPort(address, "7")))
	}
	errs = append(errs, n.serveDNS(n.there, ":53"))
	return errors.Join(errs...)
}

// listen opens a TCP listener in a namespace; an address without a host means every address of
// both families.
func (n *internet) listen(thread *nsthread.Thread, address string) (listener net.Listener, err error) {
	err = thread.Do(func() (err error) { listener, err = net.Listen("tcp", address); return err })
	return listener, err
}

// serveTCP answers each connection with talk.
func (n *internet) serveTCP(thread *nsthread.Thread, address string, talk func(net.Conn)) error {
	listener, err := n.listen(thread, address)
	if err != nil {
		return err
	}
	var mu sync.Mutex
	open := map[net.Conn]bool{} // guarded by mu; nil once the test network ends
	n.closers = append(n.closers, func() {
		listener.Close()
		mu.Lock()
		defer mu.Unlock()
		for conn := range open {
			conn.Close()
		}
		open = nil
	})
	handle := func(conn net.Conn) {
		defer conn.Close()
		talk(conn)
		mu.Lock()
		defer mu.Unlock()
		delete(open, conn)
	}
	n.served.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			n.visit("tcp", canonical(conn.LocalAddr()))
			mu.Lock()
			if open != nil {
				open[conn] = true
				n.served.Go(func() { handle(conn) })
			} else {
				conn.Close()
			}
			mu.Unlock()
		}
	})
	return nil
}

// canonical converts an address of a dual-stack socket into its own family.
func canonical(address net.Addr) string {
	at, err := netip.ParseAddrPort(address.String())
	if err != nil {
		return address.String()
	}
	return netip.AddrPortFrom(at.Addr().Unmap(), at.Port()).String()
}

// echo answers every line, or a part of one, with itself.
func echo(conn net.Conn) {
	buffer := make([]byte, 32<<10)
	for first := true; ; first = false {
		size, err := conn.Read(buffer)
		if first && size > 0 {
			io.WriteString(conn, reached+" ")
		}
		if size > 0 {
			conn.Write(buffer[:size])
		}
		if err != nil {
			return
		}
	}
}

// greet sends first, as SSH, SMTP and other servers do.
func greet(banner string) func(net.Conn) {
	return func(conn net.Conn) {
		fmt.Fprintf(conn, "%s\r\n", banner)
		io.Copy(conn, conn)
	}
}

// postgres implements enough of PostgreSQL's protocol, version 3, for a client to log in and
// to get one row for any query.
func postgres(conn net.Conn) {
	r := bufio.NewReader(conn)
	for { // startup packets have no type
		var head [8]byte
		if _, err := io.ReadFull(r, head[:]); err != nil {
			return
		}
		length, code := binary.BigEndian.Uint32(head[:]), binary.BigEndian.Uint32(head[4:])
		if code == 3<<16 && length < 10_000 {
			io.CopyN(io.Discard, r, int64(length)-8)
			break
		}
		const sslRequest, gssRequest = 80877103, 80877104
		if code != sslRequest && code != gssRequest {
			fmt.Fprintf(conn, "%s\n", reached) // not a client of Postgres
			return
		}
		io.WriteString(conn, "N")
	}
	const ready = "Z\x00\x00\x00\x05I"
	io.WriteString(conn, "R\x00\x00\x00\x08\x00\x00\x00\x00"+ready)
	for {
		var head [5]byte
		if _, err := io.ReadFull(r, head[:]); err != nil || head[0] == 'X' {
			return
		}
		io.CopyN(io.Discard, r, int64(binary.BigEndian.Uint32(head[1:]))-4)
		column := "word\x00" + string(make([]byte, 6)) + "\x00\x00\x00\x19\xff\xff\xff\xff\xff\xff\x00\x00" // one, of text
		io.WriteString(conn, message('T', "\x00\x01"+column)+
			message('D', "\x00\x01\x00\x00\x00\x07"+reached)+message('C', "SELECT 1\x00")+ready)
	}
}

func message(kind byte, body string) string {
	return string(binary.BigEndian.AppendUint32([]byte{kind}, uint32(len(body)+4))) + body
}

// serveWeb serves n.web, over TLS if there is a configuration.
func (n *internet) serveWeb(thread *nsthread.Thread, address string, config *tls.Config) error {
	listener, err := n.listen(thread, address)
	if err != nil {
		return err
	}
	server := &http.Server{Handler: n.web, TLSConfig: config, ErrorLog: log.New(io.Discard, "", 0),
		ConnState: func(conn net.Conn, state http.ConnState) {
			if state == http.StateNew {
				n.visit("tcp", canonical(conn.LocalAddr()))
			}
		}}
	n.closers = append(n.closers, func() { server.Close() })
	n.served.Go(func() {
		if config != nil {
			server.ServeTLS(listener, "", "")
		} else {
			server.Serve(listener)
		}
	})
	return nil
}

// webPages are the pages of every site; a test may add to n.web.
func (n *internet) webPages() {
	n.web.HandleFunc("/", func(w http.ResponseWriter, r *http.Request) {
		local, _ := r.Context().Value(http.LocalAddrContextKey).(net.Addr)
		fmt.Fprintf(w, "%s %s as %s\n", reached, canonical(local), r.Host)
	})
	n.web.HandleFunc("/redirect", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, r.URL.Query().Get("to"), http.StatusFound)
	})
	n.web.HandleFunc("/bytes/{count}", func(w http.ResponseWriter, r *http.Request) {
		count, err := strconv.ParseInt(r.PathValue("count"), 10, 64)
		if err != nil {
			http.Error(w, err.Error(), http.StatusBadRequest)
			return
		}
		w.Header().Set("Content-Length", strconv.FormatInt(count, 10))
		io.CopyN(w, zeros{}, count)
	})
	n.web.HandleFunc("/drop", func(w http.ResponseWriter, r *http.Request) {
		count, _ := io.Copy(io.Discard, r.Body)
		fmt.Fprintf(w, "%s with %d bytes\n", reached, count)
	})
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) { clear(p); return len(p), nil }

// serveUDP echoes datagrams.
func (n *internet) serveUDP(thread *nsthread.Thread, address string) error {
	var conn net.PacketConn
	err := thread.Do(func() (err error) {
		conn, err = (&net.ListenConfig{}).ListenPacket(context.Background(), "udp", address)
		return err
	})
	if err != nil {
		return err
	}
	n.closers = append(n.closers, func() { conn.Close() })
	n.served.Go(func() {
		buffer := make([]byte, 64<<10)
		for {
			size, from, err := conn.ReadFrom(buffer)
			if err != nil {
				return
			}
			n.visit("udp", address)
			conn.WriteTo(append([]byte(reached+" "), buffer[:size]...), from)
		}
	})
	return nil
}

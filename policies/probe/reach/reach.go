// Package reach tries connections and the agent's own socket inside a sandbox. It needs Go's
// network; package probe needs nothing but system calls.
//
// A connection shows a name, in the first bytes of TLS or HTTP, because a rule by name waits
// for it. The server's answer does not matter.
package reach

import (
	"cmp"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strconv"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/client"
	"clove.run/clove/policies/probe"
)

// Bounds of a connection.
const (
	connectTime = 10 * time.Second
	answerTime  = 3 * time.Second // for the first bytes, or the gate's refusal
)

// Try is what probe.Main calls for connections and grants.
func Try(t probe.Try) probe.Found {
	if t.Kind == probe.Connect {
		return connect(t.What, t.UDP)
	}
	return granted(t.Kind + ":" + t.What)
}

// connect looks a name up, connects and shows the name. Whether a rule refused it, only the
// sandbox's record says.
func connect(target string, udp bool) probe.Found {
	network := "tcp"
	if udp {
		network = "udp"
	}
	host, port, err := net.SplitHostPort(target)
	if err != nil {
		return probe.Found{Untried: true, Detail: err.Error()}
	}
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	resolver := &net.Resolver{PreferGo: true}
	found, err := resolver.LookupNetIP(ctx, "ip", host)
	if err != nil {
		return probe.Refused(err, "look-up")
	}
	var f probe.Found
	for _, address := range found {
		one := net.JoinHostPort(address.Unmap().String(), port)
		f.Addresses = append(f.Addresses, one)
		conn, dialErr := (&net.Dialer{}).DialContext(ctx, network, one)
		if dialErr != nil {
			err = dialErr
			continue
		}
		f.Done, f.Detail = true, speak(conn, host, port, udp)
		conn.Close()
		return f
	}
	if err == nil {
		err = fmt.Errorf("%s has no address", host)
	}
	refused := probe.Refused(err, "connect")
	refused.Addresses = f.Addresses
	return refused
}

// speak shows the name, and waits for an answer or the end. The answer does not matter.
func speak(conn net.Conn, host, port string, udp bool) string {
	_ = conn.SetDeadline(time.Now().Add(answerTime)) // without one, the gate has a limit
	switch number, _ := strconv.Atoi(port); {
	case udp:
		_, _ = conn.Write([]byte{0})
		_ = conn.SetReadDeadline(time.Now().Add(probe.CallTime)) // an answer is not needed
	case number == 80:
		fmt.Fprintf(conn, "HEAD / HTTP/1.1\r\nHost: %s\r\nConnection: close\r\n\r\n", host)
	default:
		err := tls.Client(conn, &tls.Config{ServerName: host, InsecureSkipVerify: true}).Handshake()
		if err == nil {
			return "connected, TLS"
		}
		return "connected, then: " + err.Error()
	}
	n, err := conn.Read(make([]byte, 1))
	var timeout net.Error
	switch {
	case n > 0:
		return "connected, and answered"
	case errors.As(err, &timeout) && timeout.Timeout():
		return "connected, without an answer"
	}
	return fmt.Sprintf("connected, then: %v", err)
}

// granted asks on the agent's own socket.
func granted(what string) probe.Found {
	ctx, cancel := context.WithTimeout(context.Background(), connectTime)
	defer cancel()
	c, err := client.Dial(ctx, agent.SocketPath)
	if err != nil {
		return probe.Refused(err, "the agent's socket")
	}
	defer c.Close()
	answer, err := client.Do(ctx, c, agents.GrantCheck, api.GrantCheckParams{What: what})
	if err != nil {
		return probe.Refused(err, "grant.check")
	}
	return probe.Found{Done: answer.Allowed, Detail: "grant.check: " + cmp.Or(answer.Reason, "grant "+answer.Grant)}
}

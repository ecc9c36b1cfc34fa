//go:build root

package integration

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/google/nftables"
	"github.com/miekg/dns"
	"github.com/vishvananda/netlink"

	"clove.run/clove/integration/probe"
)

// ask puts one question to a name server and shows the answer; an answer that
// came, with records, is a success.
func ask(a attempt) (string, error) {
	client := dns.Client{Timeout: attemptTime, UDPSize: 1232}
	if a.TCP {
		client.Net = "tcp"
	}
	query := new(dns.Msg).SetQuestion(a.Question, a.Type)
	query.SetEdns0(1232, false)
	reply, _, err := client.Exchange(query, a.Address)
	if err != nil {
		return "", err
	}
	var answers []string
	for _, record := range reply.Answer {
		answers = append(answers, record.String())
	}
	said := fmt.Sprintf("%s tc=%v %s", dns.RcodeToString[reply.Rcode], reply.Truncated, strings.Join(answers, "; "))
	if reply.Rcode == dns.RcodeSuccess && (len(answers) > 0 || reply.Truncated) {
		said += " " + reached
	}
	return said, nil
}

// holdConnections opens connections to a server that speaks first, says how
// many were served, and holds them until its input ends: idle ADDRESS COUNT
// [BYTES], with bytes that it sends on each before it waits for the server.
func holdConnections(args []string) error {
	count, err := strconv.Atoi(args[1])
	if err != nil {
		return err
	}
	var opening []byte
	if len(args) > 2 {
		opening = []byte(args[2])
	}
	var served, refused atomic.Int64
	var mu sync.Mutex
	var held []net.Conn // guarded by mu
	var wait sync.WaitGroup
	places := make(chan struct{}, 64)
	for range count {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			conn, err := net.DialTimeout("tcp", args[0], 4*attemptTime)
			if err != nil {
				refused.Add(1)
				return
			}
			mu.Lock()
			held = append(held, conn)
			mu.Unlock()
			if len(opening) > 0 {
				conn.Write(opening) // half a request: nobody answers it
				return
			}
			conn.SetReadDeadline(time.Now().Add(4 * attemptTime))
			if n, err := conn.Read(make([]byte, 1)); n == 1 && err == nil {
				served.Add(1)
			} else {
				refused.Add(1)
				conn.Close()
			}
		})
	}
	wait.Wait()
	fmt.Printf("served %d refused %d\n", served.Load(), refused.Load())
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// askMany sends a crowd of questions to its name server, each about another
// name, waits for no answer to most, and then until its input ends: COUNT DOMAIN.
func askMany(args []string) error {
	count, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	conn, err := net.Dial("udp", insideResolver)
	if err != nil {
		return err
	}
	defer conn.Close()
	for i := range count {
		query, err := new(dns.Msg).SetQuestion(fmt.Sprintf("n%d.%s.", i, args[1]), dns.TypeA).Pack()
		if err != nil {
			return err
		}
		conn.Write(query) // what does not fit is dropped, as on any network
	}
	conn.SetReadDeadline(time.Now().Add(4 * attemptTime))
	if _, err := conn.Read(make([]byte, 512)); err != nil {
		return fmt.Errorf("no answer at all: %w", err)
	}
	fmt.Printf("served %d refused %d\n", 1, 0)
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// listenInside serves the world's word on ports of every own address until its
// input ends: listen ADDRESS...
func listenInside(args []string) error {
	for _, address := range args {
		listener, err := net.Listen("tcp", address)
		if err != nil {
			return err
		}
		go func() {
			for {
				conn, err := listener.Accept()
				if err != nil {
					return
				}
				go func() {
					defer conn.Close()
					echo(conn)
				}()
			}
		}()
	}
	fmt.Println("up")
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// fetchByStep fetches each URL when it is told it, and answers with a line.
func fetchByStep([]string) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		said, err := fetch(lines.Text())
		if err != nil {
			said += " | " + err.Error()
		}
		fmt.Printf("%q\n", said)
	}
	return lines.Err()
}

// flushRules tries, as whoever it is, to change the rules of its own network
// namespace, in every way that there is.
func flushRules([]string) error {
	out := json.NewEncoder(os.Stdout)
	_, everything, _ := net.ParseCIDR("0.0.0.0/0")
	loopback, err := netlink.LinkByName("lo")
	if err != nil {
		return err
	}
	ways := []struct {
		name string
		try  func() error
	}{
		{"sysctl ip_nonlocal_bind", func() error { return os.WriteFile("/proc/sys/net/ipv4/ip_nonlocal_bind", []byte("1"), 0) }},
		{"sysctl route_localnet", func() error { return os.WriteFile("/proc/sys/net/ipv4/conf/lo/route_localnet", []byte("1"), 0) }},
		{"sysctl ping_group_range", func() error {
			return os.WriteFile("/proc/sys/net/ipv4/ping_group_range", []byte("0 2147483647"), 0)
		}},
		{"add address", func() error {
			return netlink.AddrAdd(loopback, &netlink.Addr{IPNet: &net.IPNet{IP: net.IPv4(9, 1, 1, 1), Mask: net.CIDRMask(32, 32)}})
		}},
		{"add route", func() error {
			return netlink.RouteAdd(&netlink.Route{LinkIndex: loopback.Attrs().Index, Dst: &net.IPNet{IP: net.IPv4(9, 2, 2, 0).To4(), Mask: net.CIDRMask(24, 32)}})
		}},
		{"delete route", func() error {
			return netlink.RouteDel(&netlink.Route{LinkIndex: loopback.Attrs().Index, Dst: everything, Table: 255, Type: syscall.RTN_LOCAL, Scope: netlink.SCOPE_HOST})
		}},
		{"add rule", func() error {
			rule := netlink.NewRule()
			rule.Table, rule.Mark = 254, 7
			return netlink.RuleAdd(rule)
		}},
		{"add link", func() error {
			return netlink.LinkAdd(&netlink.Veth{LinkAttrs: netlink.LinkAttrs{Name: "v0"}, PeerName: "v1"})
		}},
		{"list rules", func() error { _, err := (&nftables.Conn{}).ListTables(); return err }},
		{"flush rules", func() error {
			c := &nftables.Conn{}
			c.FlushRuleset()
			return c.Flush()
		}},
		{"bind transparently", func() error { return bindElsewhere("93.184.216.77:80") }},
		{"link down", func() error { return netlink.LinkSetDown(loopback) }},
	}
	for _, way := range ways {
		err := way.try()
		r := probe.Result{Probe: way.name, OK: err == nil}
		if err != nil {
			r.Detail = err.Error()
			r.Errno = "EPERM"
			if !errors.Is(err, syscall.EPERM) && !errors.Is(err, syscall.EACCES) && !errors.Is(err, syscall.EROFS) {
				r.Errno = r.Detail
			}
		}
		if err := out.Encode(r); err != nil {
			return err
		}
	}
	return nil
}

// bindElsewhere takes an address that is not this host's, IP_TRANSPARENT, ip(7).
func bindElsewhere(address string) error {
	at := netip.MustParseAddrPort(address)
	fd, err := syscall.Socket(syscall.AF_INET, syscall.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	defer syscall.Close(fd)
	if err := syscall.SetsockoptInt(fd, syscall.SOL_IP, syscall.IP_TRANSPARENT, 1); err != nil {
		return err
	}
	return syscall.Bind(fd, &syscall.SockaddrInet4{Port: int(at.Port()), Addr: at.Addr().As4()})
}

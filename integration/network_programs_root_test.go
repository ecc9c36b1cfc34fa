//go:build root

package integration

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/miekg/dns"
)

// ask sends one query to a name server and prints the answer; an answer with records is a
// success.
func ask(a attempt) (string, error) {
	client := dns.Client{Timeout: a.Within, UDPSize: 1232}
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

// holdConnections opens connections to a server that sends first, prints how many were served,
// and holds them until its input ends: idle ADDRESS COUNT [BYTES], with bytes that it sends on
// each before it waits for the server.
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
				conn.Write(opening) // half a request, which no server answers
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

// askMany sends many queries to its name server, each about another name, does not wait for
// most answers, and then waits until its input ends: COUNT DOMAIN.
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
		conn.Write(query) // it may be dropped, as on any network
	}
	conn.SetReadDeadline(time.Now().Add(4 * attemptTime))
	if _, err := conn.Read(make([]byte, 512)); err != nil {
		return fmt.Errorf("no answer at all: %w", err)
	}
	fmt.Printf("served %d refused %d\n", 1, 0)
	io.Copy(io.Discard, os.Stdin)
	return nil
}

// listenInside answers with the word reached on ports of all its own addresses until its input
// ends: listen ADDRESS...
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

// fetchByStep fetches each URL that it reads, and answers with a line.
func fetchByStep([]string) error {
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		said, err := fetch(lines.Text(), 8*attemptTime)
		if err != nil {
			said += " | " + err.Error()
		}
		fmt.Printf("%q\n", said)
	}
	return lines.Err()
}

//go:build root

package integration

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/internal/rpc"
	"clove.run/clove/kernel/channel"
	"clove.run/clove/kernel/socket"
)

// eachLine does something for each line of numbers on the standard input, and prints what it
// returns.
func eachLine(do func(numbers []int) (string, error)) error {
	fmt.Println("up")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var numbers []int
		for _, word := range strings.Fields(lines.Text()) {
			n, err := strconv.Atoi(word)
			if err != nil {
				return err
			}
			numbers = append(numbers, n)
		}
		text, err := do(numbers)
		if err != nil {
			return err
		}
		fmt.Println(text)
	}
	return lines.Err()
}

// timeCalls makes one call after the other for some milliseconds, several checks to a charge,
// for one of two measurements. It prints the 99th percentiles of all times that this
// measurement has so far, in microseconds, and how many checks there were.
func timeCalls([]string) error {
	conn, err := ownSocket()
	if err != nil {
		return err
	}
	checks, charges := [2][]time.Duration{}, [2][]time.Duration{}
	return eachLine(func(numbers []int) (string, error) {
		which := numbers[1]
		for end := time.Now().Add(time.Duration(numbers[0]) * time.Millisecond); time.Now().Before(end); {
			for range 4 {
				if checks[which], err = conn.timed(checks[which], agents.GrantCheck.Name, `{"what":"tool:fetch"}`); err != nil {
					return "", err
				}
			}
			if charges[which], err = conn.timed(charges[which], agents.BudgetCharge.Name, `{"amounts":{"n":1}}`); err != nil {
				return "", err
			}
		}
		return fmt.Sprint(percentile(checks[which]).Microseconds(), " ", percentile(charges[which]).Microseconds(), " ", len(checks[which])), nil
	})
}

// timed adds the time of a call.
func (c *lineConn) timed(took []time.Duration, method, params string) ([]time.Duration, error) {
	began := time.Now()
	m, err := c.exchange(method, []byte(params))
	if err != nil || len(m.Error) > 0 {
		return nil, fmt.Errorf("%s: %s, %w", method, m.Error, err)
	}
	return append(took, time.Since(began)), nil
}

// percentile is the 99th.
func percentile(took []time.Duration) time.Duration {
	return slices.Sorted(slices.Values(took))[len(took)*99/100]
}

// flood makes as many calls as it can for some milliseconds, on all connections that it may
// have, and prints their number and its own processor time in microseconds.
func flood([]string) error {
	var conns []*lineConn
	for range socket.MaxConnections {
		conn, err := ownSocket()
		if err != nil {
			return err
		}
		conns = append(conns, conn)
	}
	return eachLine(func(numbers []int) (string, error) {
		before := ownTime()
		end := time.Now().Add(time.Duration(numbers[0]) * time.Millisecond)
		var made atomic.Int64
		var all sync.WaitGroup
		failed := make([]error, len(conns))
		for i, conn := range conns {
			all.Go(func() { failed[i] = conn.pour(end, &made) })
		}
		all.Wait()
		return fmt.Sprint(made.Load(), " ", (ownTime() - before).Microseconds()), errors.Join(failed...)
	})
}

// pour keeps some calls in flight until a time, and reads all answers.
func (c *lineConn) pour(end time.Time, made *atomic.Int64) error {
	const flying = channel.MaxCalls / socket.MaxConnections
	const calls = `{"jsonrpc":"2.0","id":1,"method":"budget.charge","params":{"amounts":{"n":1}}}` + "\n" + `{"jsonrpc":"2.0","id":1,"method":"grant.check","params":{"what":"tool:fetch"}}` + "\n"
	for time.Now().Before(end) {
		if _, err := io.WriteString(c, strings.Repeat(calls, flying/2)); err != nil {
			return err
		}
		for range flying {
			if _, err := c.answers.ReadSlice('\n'); err != nil {
				return err
			}
			made.Add(1)
		}
	}
	return nil
}

func ownTime() time.Duration {
	var use unix.Rusage
	if err := unix.Getrusage(unix.RUSAGE_SELF, &use); err != nil {
		panic(err) // only a wrong argument fails
	}
	return time.Duration(use.Utime.Nano() + use.Stime.Nano())
}

// burn uses processor time for some milliseconds, so many thousandths of a processor, and
// makes no call. It has as many threads as the processes of a flood have running: the agent,
// its gate, its supervisor and cloved, each with two.
func burn([]string) error {
	return eachLine(func(numbers []int) (string, error) {
		end := time.Now().Add(time.Duration(numbers[0]) * time.Millisecond)
		const slice, threads = 8 * time.Millisecond, 8
		busy := slice * time.Duration(numbers[1]) / 1000 / threads
		var all sync.WaitGroup
		for range threads {
			all.Go(func() {
				for now := time.Now(); now.Before(end); now = time.Now() {
					for time.Since(now) < busy { // it computes
					}
					time.Sleep(time.Until(now.Add(slice)))
				}
			})
		}
		all.Wait()
		return "burnt", nil
	})
}

// crowds are ways to keep a gate busy with clients that do nothing more. Each returns when its
// clients are there.
var crowds = map[string]func() error{
	"silent": func() error { return crowdWith(func(net.Conn) error { return nil }) },
	"half": func() error {
		return crowdWith(func(c net.Conn) error { return writeOnly(c, strings.Repeat("x", api.MaxAgentLine)) })
	},
	"slow": func() error { return errors.Join(longAnswers(), crowdWith(notReading)) },
	"half-shut": func() error {
		return crowdWith(func(c net.Conn) error { return errors.Join(writeOnly(c, "{"), c.(*net.UnixConn).CloseWrite()) })
	},
}

// crowdSocket makes one of the crowds, and keeps it until its input ends.
func crowdSocket(args []string) error {
	if err := crowds[args[0]](); err != nil {
		return err
	}
	fmt.Println("there")
	_, err := io.Copy(io.Discard, os.Stdin)
	return err
}

// crowdWith makes more connections than the gate takes, and has each do something.
func crowdWith(do func(net.Conn) error) error {
	var all sync.WaitGroup
	failed := make([]error, 2*socket.MaxConnections)
	for i := range failed {
		conn, err := ownSocket()
		if err != nil {
			return err
		}
		crowded = append(crowded, conn)
		all.Go(func() {
			if err := do(conn.Conn); !isCut(err) {
				failed[i] = err
			}
		})
	}
	all.Wait()
	return errors.Join(failed...)
}

// crowded keeps the connections from being collected.
var crowded []*lineConn

// isCut reports whether the gate has ended the connection, as it may.
func isCut(err error) bool {
	return errors.Is(err, unix.EPIPE) || errors.Is(err, unix.ECONNRESET) || errors.Is(err, unix.ENOTCONN) || errors.Is(err, os.ErrDeadlineExceeded)
}

// writeOnly waits at most a second for a reader.
func writeOnly(c net.Conn, text string) error {
	if err := c.SetWriteDeadline(time.Now().Add(time.Second)); err != nil {
		return err
	}
	_, err := io.WriteString(c, text)
	return err
}

// notReading makes calls with long answers and reads none, until the gate has cut it off.
func notReading(c net.Conn) error {
	for end := time.Now().Add(3 * time.Second); time.Now().Before(end); {
		if err := writeOnly(c, `{"jsonrpc":"2.0","id":1,"method":"grant.list","params":{}}`+"\n"); err != nil {
			return err
		}
		time.Sleep(5 * time.Millisecond) // or most calls would be refused, with short answers
	}
	return nil
}

// longAnswers derives grants that make the answer to grant.list long.
func longAnswers() error {
	conn, err := ownSocket()
	if err != nil {
		return err
	}
	var list api.GrantListResult
	m, err := conn.exchange(agents.GrantList.Name, []byte("{}"))
	if err == nil {
		err = json.Unmarshal(m.Result, &list)
	}
	for i := 0; i < 39 && err == nil; i++ {
		_, err = conn.exchange(agents.GrantDerive.Name, fmt.Appendf(nil, `{"from":%q,"grant":"tool:%d%s"}`, list.Grants[0].ID, i, strings.Repeat("x", 400)))
	}
	return err
}

// overfill makes more calls than may be in flight, on a few connections. It prints how many
// were refused at once, and, when its input has a line, how many were answered in all.
func overfill([]string) error {
	const conns, each = 8, channel.MaxCalls/4 + 8
	var refused, answered atomic.Int64
	var all sync.WaitGroup
	for range conns {
		conn, err := ownSocket()
		if err == nil {
			_, err = io.WriteString(conn, strings.Repeat(whoami+"\n", each))
		}
		if err != nil {
			return err
		}
		all.Go(func() {
			for range each {
				var m rpc.Message
				line, err := conn.answers.ReadBytes('\n')
				if err != nil || json.Unmarshal(line, &m) != nil {
					return // the numbers say so
				}
				if len(m.Error) > 0 && api.ParseError(m.Error).Code == api.CodeBusy {
					refused.Add(1)
					continue
				}
				answered.Add(1)
			}
		})
	}
	for refused.Load() < conns*each-channel.MaxCalls { // the test has a time limit
		time.Sleep(time.Millisecond)
	}
	fmt.Println(refused.Load(), answered.Load())
	if _, err := bufio.NewReader(os.Stdin).ReadString('\n'); err != nil {
		return err
	}
	all.Wait()
	fmt.Println(refused.Load(), answered.Load())
	return nil
}

//go:build root

package integration

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/internal/rpc"
)

const agentSocketInside = "/run/clove/agent.sock"

// lineConn sends a line on a connection and returns the answer.
type lineConn struct {
	net.Conn
	answers *bufio.Reader
}

func connected(conn net.Conn) *lineConn { return &lineConn{conn, bufio.NewReader(conn)} }

// ownSocket connects to the agent's own socket.
func ownSocket() (*lineConn, error) {
	conn, err := net.Dial("unix", cmp.Or(os.Getenv("CLOVE_AGENT_SOCKET"), agentSocketInside))
	if err != nil {
		return nil, err
	}
	return connected(conn), nil
}

// ask prints the answer, or "gone" with the error.
func (c *lineConn) ask(line string) error {
	_, err := c.Write([]byte(line + "\n"))
	var answer string
	if err == nil {
		answer, err = c.answers.ReadString('\n')
	}
	if err != nil {
		fmt.Printf("gone: %v\n", err)
		return err
	}
	fmt.Print(answer)
	return nil
}

// passCalls sends each line of its input to the agent's own socket, and prints the answers.
func passCalls([]string) error {
	conn, err := ownSocket()
	if err != nil {
		return err
	}
	fmt.Println("up")
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		if conn.ask(lines.Text()) == nil {
			continue
		}
		if again, err := ownSocket(); err == nil {
			conn = again
		}
	}
	return lines.Err()
}

// reserveAtOnce reserves one review in each of many calls at once, on some connections, and
// prints how many were granted and how many were refused for the budget: reserve CALLS. It
// begins with the first line of its input.
func reserveAtOnce(args []string) error {
	calls, err := strconv.Atoi(args[0])
	if err != nil {
		return err
	}
	const connections = 10
	conns := make([]*lineConn, connections)
	for i := range conns {
		if conns[i], err = ownSocket(); err != nil {
			return err
		}
	}
	fmt.Println("up")
	_, _ = bufio.NewReader(os.Stdin).ReadString('\n')
	answers := make(chan string, calls)
	for i, conn := range conns {
		share := (calls + i) / connections // together: calls
		go func() {
			_, _ = conn.Write([]byte(strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"budget.reserve","params":{"amounts":{"reviews":1}}}`+"\n", share)))
			for range share {
				answer, err := conn.answers.ReadString('\n')
				answers <- answer + fmt.Sprint(err)
			}
		}()
	}
	granted, refused := 0, 0
	for range calls {
		switch answer := <-answers; {
		case strings.Contains(answer, `"reservation":`):
			granted++
		case strings.Contains(answer, `"word":"budget"`):
			refused++
		default:
			fmt.Println(answer)
		}
	}
	fmt.Println(granted, refused)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// whoami is a call that every agent may make; its answer has the agent's name.
const whoami = `{"jsonrpc":"2.0","id":1,"method":"agent.get","params":{}}`

// handConnection makes a call on a connection of its own, hands the connection to the program that
// connects to a socket, and prints what it answers when the other has used it: hand SOCKET.
func handConnection(args []string) error {
	own, err := ownSocket()
	if err != nil {
		return err
	}
	listener, err := net.Listen("unix", args[0])
	if err == nil {
		err = os.Chmod(args[0], 0o777)
	}
	if err != nil {
		return err
	}
	if err := own.ask(whoami); err != nil {
		return err
	}
	other, err := listener.Accept()
	if err != nil {
		return err
	}
	file, err := own.Conn.(*net.UnixConn).File()
	if err == nil {
		_, err = passfd.Send(other.(*net.UnixConn), []byte("x"), file)
	}
	if err != nil {
		return err
	}
	file.Close()
	_, _ = io.Copy(io.Discard, other) // until the other has used it
	_ = own.ask(whoami)
	_, err = io.Copy(io.Discard, os.Stdin)
	return err
}

// takeConnection gets a connection from handConnection, makes a call on it, and then one on
// a connection of its own: take SOCKET.
func takeConnection(args []string) error {
	giver, err := net.Dial("unix", args[0])
	if err != nil {
		return err
	}
	_, fds, err := passfd.Receive(giver.(*net.UnixConn), make([]byte, 1), 1)
	if err != nil || len(fds) != 1 {
		return errors.Join(err, fmt.Errorf("%d descriptors", len(fds)))
	}
	file := os.NewFile(uintptr(fds[0]), "handed")
	foreign, err := net.FileConn(file)
	if err != nil {
		return err
	}
	file.Close()
	_ = connected(foreign).ask(whoami)
	own, err := ownSocket()
	if err == nil {
		err = own.ask(whoami)
	}
	giver.Close()
	return err
}

// forgeSender sends with the ids of another user, on a pair of its own and then to the
// agent's socket, where there is one. It prints an errno for each; 0: it was sent.
func forgeSender([]string) error {
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM, 0)
	if err != nil {
		return err
	}
	for _, uid := range []uint32{1, 70_000, 4_000_000_000} {
		fmt.Printf("pair %d %d\n", uid, forgedTo(fds[0], "x", uid))
	}
	own, err := ownSocket()
	if err != nil {
		return nil // outside
	}
	raw, err := own.Conn.(*net.UnixConn).SyscallConn()
	if err != nil {
		return err
	}
	return raw.Control(func(fd uintptr) {
		for _, uid := range []uint32{70_000, 4_000_000_000} {
			fmt.Printf("socket %d %d\n", uid, forgedTo(int(fd), whoami+"\n", uid))
		}
	})
}

func forgedTo(fd int, text string, uid uint32) syscall.Errno {
	forged := unix.UnixCredentials(&unix.Ucred{Pid: int32(os.Getpid()), Uid: uid, Gid: 0})
	err := unix.Sendmsg(fd, []byte(text), forged, nil, 0)
	var errno syscall.Errno
	errors.As(err, &errno)
	return errno
}

// holdOne connects to an address, and prints when it is served and when the connection ends.
func holdOne(args []string) error {
	conn, err := net.DialTimeout("tcp", args[0], 4*attemptTime)
	if err != nil {
		return err
	}
	if _, err := conn.Write([]byte("x\n")); err != nil {
		return err
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return err
	}
	fmt.Println("served")
	_, _ = io.Copy(io.Discard, conn) // the end or an error: both mean that it is cut
	fmt.Println("cut")
	return nil
}

// calls starts an agent whose calls the test writes.
func (h *host) calls(flags ...string) *running {
	h.t.Helper()
	r := h.start(self(flags...), agentInside, agentWord, "calls")
	if line := r.line(); line != "up" {
		h.t.Fatalf("%q\n%s", line, &r.stderr)
	}
	return r
}

// request writes a request without waiting for its answer.
func (r *running) request(method, params string) {
	r.h.t.Helper()
	if _, err := fmt.Fprintf(r.stdin, `{"jsonrpc":"2.0","id":1,"method":%q,"params":%s}`+"\n", method, params); err != nil {
		r.h.t.Fatal(err)
	}
}

// answer reads the answer to a request. The zero Message: the connection has ended.
func (r *running) answer() (m rpc.Message) {
	r.h.t.Helper()
	line := r.line()
	if err := json.Unmarshal([]byte(line), &m); err != nil {
		r.h.t.Logf("%q", line)
	}
	return m
}

// call makes a call and returns its answer.
func (r *running) call(method, params string) rpc.Message {
	r.h.t.Helper()
	r.request(method, params)
	return r.answer()
}

// budgetIn is the line of a budget that a call's answer has.
func budgetIn(t *testing.T, m rpc.Message, dimension string) api.Budget {
	t.Helper()
	var result api.BudgetResult
	if err := json.Unmarshal(m.Result, &result); err != nil {
		t.Fatalf("%+v: %s", m, m.Error)
	}
	for _, b := range result.Budgets {
		if b.Dimension == dimension {
			return b
		}
	}
	t.Fatalf("no %s in %+v", dimension, result)
	return api.Budget{}
}

// refusedWith reports whether the answer is an error with this code.
func refusedWith(m rpc.Message, code api.Code) bool {
	return len(m.Error) > 0 && api.ParseError(m.Error).Code == code
}

// until tries until it succeeds, while patience lasts.
func until(t *testing.T, what string, try func() bool) {
	t.Helper()
	for deadline := time.Now().Add(patience()); !try(); time.Sleep(10 * time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatal("never: " + what)
		}
	}
}

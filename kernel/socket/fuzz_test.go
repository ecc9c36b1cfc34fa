package socket

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net"
	"os"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/channel"
)

// connections is a connected pair; the first passes on who sent each byte.
func connections(t testing.TB) (reads, writes *net.UnixConn) {
	t.Helper()
	fds, err := unix.Socketpair(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	must(t, err)
	must(t, unix.SetsockoptInt(fds[0], unix.SOL_SOCKET, unix.SO_PASSCRED, 1))
	var both [2]*net.UnixConn
	for i, fd := range fds {
		file := os.NewFile(uintptr(fd), "pair")
		conn, err := net.FileConn(file)
		must(t, err)
		must(t, file.Close())
		both[i] = conn.(*net.UnixConn)
	}
	return both[0], both[1]
}

// FuzzLines: whatever is written, in whatever parts, the reader returns the lines of it, up
// to the first that is too long.
func FuzzLines(f *testing.F) {
	f.Add([]byte("one\ntwo\n\nrest"), uint16(3))
	f.Add(append(bytes.Repeat([]byte("x"), api.MaxAgentLine), "\n{}\n"...), uint16(4096))
	f.Add(append(bytes.Repeat([]byte("x"), api.MaxAgentLine+1), "\n{}\n"...), uint16(65535))
	f.Fuzz(func(t *testing.T, text []byte, part uint16) {
		reads, writes := connections(t)
		defer reads.Close()
		go func() {
			defer writes.Close()
			for rest := text; len(rest) > 0; {
				n := min(len(rest), int(part)+1)
				if _, err := writes.Write(rest[:n]); err != nil {
					return // the reader has ended
				}
				rest = rest[n:]
			}
		}()
		in := lines{conn: reads, allow: ids{uint32(os.Getuid()), 1}}
		for rest := text; ; {
			want, behind, found := bytes.Cut(rest, []byte("\n"))
			got, err := in.next()
			switch {
			case len(want) > api.MaxAgentLine:
				if !errors.Is(err, errTooLong) {
					t.Fatalf("a line of %d bytes: %v", len(want), err)
				}
				return
			case !found:
				if !errors.Is(err, io.EOF) {
					t.Fatalf("at the end: %q, %v", got, err)
				}
				return
			case err != nil || !bytes.Equal(got, want):
				t.Fatalf("%q, %v, want %q", got, err, want)
			}
			rest = behind
		}
	})
}

// FuzzTake: whatever a line is, the supervisor gets a method for agents with parameters of
// its type in the one form that clove writes, or nothing.
func FuzzTake(f *testing.F) {
	for _, m := range methods.All() {
		params, err := json.Marshal(m.Params)
		must(f, err)
		f.Add([]byte(request(1, m.Name, string(params))))
	}
	f.Add([]byte(request(1, api.MethodCancel, `{"id":1}`)))
	f.Add([]byte(`{"jsonrpc":"2.0","method":"budget.charge","params":{"amounts":{"a":1e3}}}`))
	f.Fuzz(func(t *testing.T, line []byte) {
		if len(line) > api.MaxAgentLine {
			return // the reader returns no such line
		}
		super, gate := pair(t)
		defer super.Close()
		reads, writes := connections(t)
		defer reads.Close()
		go func() { _, _ = io.Copy(io.Discard, reads) }()
		c := &connection{server: New(gate, 0, 1), conn: writes}
		c.take(line)
		c.out.close(writes)
		must(t, gate.Close())
		var m channel.FromGate
		err := super.Receive(&m)
		if errors.Is(err, io.EOF) {
			return
		}
		must(t, err)
		if m.Call == nil {
			t.Fatalf("%+v", m)
		}
		row, known := methods.Find(m.Call.Method)
		again, _, err := typed(m.Call.Method, m.Call.Params)
		if !known || !row.ForAgents() || err != nil || !bytes.Equal(again, m.Call.Params) {
			t.Fatalf("%s %s becomes %s, %v", m.Call.Method, m.Call.Params, again, err)
		}
	})
}

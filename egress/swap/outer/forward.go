package outer

import (
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"net/http"
	"os"
	"strings"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/internal/packet"
)

// ServeHTTP has the inner side make a request, and passes its answer on.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	c := r.Context().Value(connKey{}).(*agentConn)
	c.change(1, false)
	defer c.change(-1, false)
	if met := c.awaitMet(); met.Error != "" {
		refuse(w, http.StatusBadGateway, "clove: "+met.Error)
		return
	}
	if r.Method == http.MethodConnect || !strings.HasPrefix(r.URL.Path, "/") {
		refuse(w, http.StatusBadRequest, "clove: such a request has no path, and rules are by path")
		return
	}
	select {
	case s.places <- struct{}{}:
		defer func() { <-s.places }()
	case <-r.Context().Done():
		return
	}
	x, err := s.send(c, r)
	if err != nil {
		refuse(w, http.StatusRequestHeaderFieldsTooLarge, "clove: the head of the request is too long")
		return
	}
	defer x.close()
	defer onDone(r, x.close)()
	if !x.upgrade {
		go x.upload(r)
	}
	x.download(w, r)
}

// onDone calls what ends a request when its client has gone.
func onDone(r *http.Request, end func()) (stop func()) {
	over := make(chan struct{})
	go func() {
		select {
		case <-r.Context().Done():
			end()
		case <-over:
		}
	}()
	return func() { close(over) }
}

// exchange is one request and its answer.
type exchange struct {
	upgrade      bool
	body, answer *os.File
}

// pipeBytes is the size of a pipe between the sides: at Linux's own 64 KiB they wait for each other too often.
const pipeBytes = 256 << 10

func pipe() (read, write *os.File, err error) {
	read, write, err = os.Pipe()
	if err != nil {
		return nil, nil, err
	}
	if raw, rerr := write.SyscallConn(); rerr == nil {
		_ = raw.Control(func(fd uintptr) { _, _ = unix.FcntlInt(fd, unix.F_SETPIPE_SZ, pipeBytes) }) // a user with many pipes has small ones
	}
	return read, write, nil
}

// send passes the head with the pipes.
func (s *Server) send(c *agentConn, r *http.Request) (*exchange, error) {
	bodyTo, body, err := pipe()
	if err != nil {
		return nil, err
	}
	answer, answerTo, err := pipe()
	if err != nil {
		packet.CloseAll([]*os.File{bodyTo, body})
		return nil, err
	}
	defer packet.CloseAll([]*os.File{bodyTo, answerTo})
	x := &exchange{body: body, answer: answer, upgrade: r.ProtoMajor == 1 && r.Header.Get("Upgrade") != ""}
	head := link.Head{Conn: c.of.Number, Method: r.Method, Host: r.Host, Path: r.URL.EscapedPath(), Query: r.URL.RawQuery, Header: r.Header, Length: r.ContentLength, Upgrade: x.upgrade}
	if r.URL.Host != "" && r.URL.Host != r.Host {
		head.Host = r.URL.Host // which the inner side compares as well
	}
	if strings.HasPrefix(r.RequestURI, "/") { // as it was written: EscapedPath may write it anew
		head.Path, head.Query, _ = strings.Cut(r.RequestURI, "?")
	}
	if err := s.inner.Send(link.ToInner{Request: &head}, bodyTo, answerTo); err != nil {
		x.close()
		return nil, err
	}
	return x, nil
}

func (x *exchange) close() { packet.CloseAll([]*os.File{x.body, x.answer}) }

// upload passes the body. One that breaks off has no end.
func (x *exchange) upload(r *http.Request) {
	w := link.NewWriter(x.body)
	if _, err := io.Copy(onlyWriter{w}, r.Body); err == nil {
		_ = w.End(link.End{Trailer: r.Trailer}) // an inner side that has answered reads no more
	}
}

// onlyWriter has io.Copy use a buffer of its own size.
type onlyWriter struct{ io.Writer }

// download passes the answer on. One that breaks off ends the connection, or the stream of HTTP/2: the agent sees that
// it is not whole.
func (x *exchange) download(w http.ResponseWriter, r *http.Request) {
	rc := http.NewResponseController(w)
	_ = rc.EnableFullDuplex() // HTTP/2 has it anyway
	from := link.NewReader(x.answer)
	a, err := from.Answer()
	if err != nil {
		panic(http.ErrAbortHandler)
	}
	if a.Status == http.StatusSwitchingProtocols {
		x.switchProtocols(rc, a, from)
		return
	}
	if x.upgrade {
		go x.upload(r)
	}
	header := w.Header()
	maps.Copy(header, a.Header)
	if a.Length >= 0 {
		header.Set("Content-Length", fmt.Sprint(a.Length))
	}
	if _, ok := header["Date"]; !ok {
		header["Date"] = nil // the server's, or none
	}
	w.WriteHeader(a.Status)
	if err := pass(w, rc, from); err != nil {
		panic(http.ErrAbortHandler)
	}
	for name, values := range from.Trailer() {
		header[http.TrailerPrefix+name] = values
	}
}

// pass copies a body as it comes.
func pass(w io.Writer, rc *http.ResponseController, from io.Reader) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			if _, werr := w.Write(buffer[:n]); werr != nil {
				return werr
			}
			if werr := rc.Flush(); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// switchProtocols passes bytes both ways behind the server's yes.
func (x *exchange) switchProtocols(rc *http.ResponseController, a link.Answer, from *link.Reader) {
	conn, client, err := rc.Hijack()
	if err != nil {
		return
	}
	defer conn.Close()
	fmt.Fprintf(client, "HTTP/1.1 %d %s\r\n", a.Status, http.StatusText(a.Status))
	_ = a.Header.Write(client)
	client.WriteString("\r\n")
	if client.Flush() != nil {
		return
	}
	go func() {
		to := link.NewWriter(x.body)
		if _, err := io.Copy(onlyWriter{to}, client.Reader); err == nil {
			_ = to.End(link.End{})
		}
		x.body.Close()
	}()
	_, _ = io.Copy(onlyWriter{conn}, from)
}

// refuse answers with a reason, in JSON.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("Content-Type", "application/json")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"message": message}})
}

package inner

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"os"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/secrets"
)

// serve makes a request, and passes its answer on. It owns the pipes.
func (s *Server) serve(h link.Head, body, answer *os.File) {
	defer body.Close()
	defer answer.Close()
	c := s.conn(h.Conn)
	if c == nil {
		return // the outer side ends the agent's connection
	}
	out := link.NewWriter(answer)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	in := &upload{reader: link.NewReader(body), file: body, gone: cancel}
	err := s.exchange(ctx, c, &h, in, out)
	var refused *refusal
	if !errors.As(err, &refused) {
		return // what was begun is broken off
	}
	s.report(named(c.host(), &h), link.Denied{Reason: refused.reason, Detail: refused.message})
	text, _ := json.Marshal(map[string]any{"error": map[string]string{"reason": string(refused.reason), "message": "clove: " + refused.message}}) // texts always encode
	text = append(text, '\n')
	if out.Answer(link.Answer{Status: refused.status, Header: http.Header{"Content-Type": {"application/json"}}, Length: int64(len(text))}) != nil {
		return
	}
	if h.Method != http.MethodHead {
		_, _ = out.Write(text)
	}
	_ = out.End(link.End{}) // the agent may have gone
}

// exchange returns nil behind a whole answer, a *refusal where the request was not made.
func (s *Server) exchange(ctx context.Context, c *serverConn, h *link.Head, in *upload, out *link.Writer) error {
	may, refused := s.admit(c.host(), h)
	if refused != nil {
		return refused
	}
	f := &finder{all: s.secrets, may: may}
	changes := append(f.header(h.Header), f.query(h)...)
	request, err := s.prepare(ctx, c, f, h, in, changes)
	if err != nil {
		return err
	}
	got, err := c.http.RoundTrip(request)
	if err != nil && ctx.Err() == nil && c.wantsCertificate() {
		return &refusal{http.StatusBadGateway, link.ReasonClient, wantsCertificate}
	}
	if err != nil {
		return err // the server has gone: the agent sees the end of the connection, as without clove
	}
	c.answered.Store(true)
	defer got.Body.Close()
	return s.answer(got, h, in, out)
}

// prepare asks for what the request carries, and makes it with the values.
func (s *Server) prepare(ctx context.Context, c *serverConn, f *finder, h *link.Head, in *upload, changes []change) (*http.Request, error) {
	var content io.Reader = in
	length := h.Length
	if len(f.inBody()) > 0 && length != 0 && !h.Upgrade {
		text, err := io.ReadAll(io.LimitReader(in, secrets.BodyMost+1))
		if err != nil {
			return nil, err
		}
		if len(text) > secrets.BodyMost {
			return nil, &refusal{http.StatusRequestEntityTooLarge, link.ReasonForm, "a body that may carry a secret has at most 1 MiB"}
		}
		inBody := f.body(text)
		changes = append(changes, func(value func(*secret) string) {
			for _, change := range inBody {
				text = change(text, value)
			}
			content, length = bytes.NewReader(text), int64(len(text))
		})
	}
	request := named(c.host(), h)
	s.report(request, f.denied...)
	if refused := s.ask(ctx, f.used, request); refused != nil {
		return nil, refused
	}
	value, all := s.value(f.used)
	if !all {
		return nil, &refusal{http.StatusServiceUnavailable, link.ReasonUse, "a secret has no value any more"}
	}
	for _, change := range changes {
		change(value)
	}
	in.strays, in.report = &finder{all: s.secrets, may: f.may}, func(d link.Denied) { s.report(request, d) }
	r := &http.Request{Method: h.Method, Host: c.of.Name, Header: clean(h.Header, h.Upgrade), ContentLength: length,
		URL: &url.URL{Scheme: "https", Host: c.host(), Opaque: "", Path: unescaped(h.Path), RawPath: h.Path, RawQuery: h.Query}}
	if h.Host != "" {
		r.Host = h.Host
	}
	if length != 0 {
		r.Body = io.NopCloser(content)
	}
	if h.Upgrade {
		r.Body, r.ContentLength = nil, 0
	}
	r.Header.Set("Accept-Encoding", "identity") // a value is looked for in the answer as it is
	if _, named := r.Header["User-Agent"]; !named {
		r.Header["User-Agent"] = nil // net/http would name itself
	}
	return r.WithContext(ctx), nil
}

func unescaped(path string) string {
	text, _ := url.PathUnescape(path) // admit has refused what cannot be
	return text
}

// hops are headers of one connection alone.
var hops = []string{"Connection", "Proxy-Connection", "Keep-Alive", "Proxy-Authenticate", "Proxy-Authorization", "Te", "Trailer", "Transfer-Encoding", "Upgrade", "Http2-Settings", "Content-Length", "Expect"}

// clean is the head without what is about one connection.
func clean(h http.Header, upgrade bool) http.Header {
	to := h.Get("Upgrade")
	trailers := h.Get("Te") == "trailers"
	for _, name := range hops {
		delete(h, name)
	}
	if trailers {
		h.Set("Te", "trailers") // gRPC's servers want it
	}
	if upgrade && to != "" {
		h.Set("Connection", "Upgrade")
		h.Set("Upgrade", to)
	}
	return h
}

// upload is the body of a request on its way out. It looks for placeholders, which stay as they are, and behind the end for the
// agent that goes away.
type upload struct {
	reader *link.Reader
	file   *os.File
	gone   context.CancelFunc
	strays *finder
	report func(link.Denied)
	tail   []byte // the end of what was read before: a placeholder may be in two parts
	ended  bool
}

// Read is as io.Reader's.
func (u *upload) Read(p []byte) (int, error) {
	n, err := u.reader.Read(p)
	if n > 0 && u.strays != nil {
		u.look(p[:n])
	}
	if err == io.EOF && !u.ended {
		u.ended = true
		go func() {
			_, _ = u.file.Read(make([]byte, 1)) // it returns when the other end is closed
			u.gone()
		}()
	}
	return n, err
}

// look reports placeholders in the next part of the body. The answer may come before the end of that.
func (u *upload) look(part []byte) {
	known := len(u.strays.denied)
	defer func() {
		for _, d := range u.strays.denied[known:] {
			u.report(d)
		}
	}()
	u.strays.stray(part, "body")
	begin := part[:min(len(part), secrets.PlaceholderMost)]
	if len(u.tail) > 0 {
		u.strays.stray(append(u.tail, begin...), "body")
	}
	u.tail = bytes.Clone(part[max(0, len(part)-secrets.PlaceholderMost+1):])
}

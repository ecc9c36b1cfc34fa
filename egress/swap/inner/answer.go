package inner

import (
	"bufio"
	"compress/gzip"
	"compress/zlib"
	"io"
	"net/http"
	"slices"
	"strings"

	"clove.run/clove/egress/swap/link"
	"clove.run/clove/secrets/redact"
)

// answer passes an answer on, without the values of secrets.
func (s *Server) answer(got *http.Response, h *link.Head, in *upload, out *link.Writer) error {
	s.mu.Lock()
	keyless, longest := s.keyless, s.longest
	s.mu.Unlock()
	if got.StatusCode == http.StatusSwitchingProtocols {
		return switched(got, keyless, in, out)
	}
	body, decoded, err := decode(got)
	if err != nil {
		return err
	}
	length := got.ContentLength
	if decoded {
		length = -1
	}
	if err := out.Answer(link.Answer{Status: got.StatusCode, Header: head(got.Header, keyless), Length: length}); err != nil {
		return err
	}
	if h.Method != http.MethodHead {
		if err := pass(body, out, keyless.NewRedactor(redact.Options{Most: bound(longest), Lines: true})); err != nil {
			return err
		}
	}
	return out.End(link.End{Trailer: without(got.Trailer, keyless)})
}

// bound is in steps, so that how many bytes are held back does not show how long a value is.
func bound(longest int) int {
	const step = 256
	return (longest + step - 1) / step * step
}

// decode is the body as it was before it was compressed: a value is found in no other form.
func decode(got *http.Response) (body io.Reader, decoded bool, err error) {
	encoding := strings.ToLower(strings.TrimSpace(strings.Join(got.Header.Values("Content-Encoding"), ",")))
	has := got.Body != http.NoBody && got.ContentLength != 0 && got.Request.Method != http.MethodHead
	switch {
	case encoding == "" || encoding == "identity" || !has:
		return got.Body, false, nil
	case encoding == "gzip" || encoding == "x-gzip":
		body, err = gzip.NewReader(got.Body)
	case encoding == "deflate":
		body, err = zlib.NewReader(bufio.NewReader(got.Body))
	default:
		err = &refusal{http.StatusBadGateway, link.ReasonForm, "the server's answer is encoded in a way in which no secret can be found"}
	}
	got.Header.Del("Content-Encoding")
	got.Header.Del("Etag") // of the compressed form
	return body, true, err
}

// pass copies a body as it comes. What is held back passes at its end.
func pass(body io.Reader, out *link.Writer, keyless *redact.Redactor) error {
	buffer := make([]byte, 32<<10)
	for {
		n, err := body.Read(buffer)
		for _, part := range keyless.Next(buffer[:n]) {
			if _, werr := out.Write(part); werr != nil {
				return werr
			}
		}
		if err == io.EOF {
			_, werr := out.Write(keyless.Rest())
			return werr
		}
		if err != nil {
			return err
		}
	}
}

// head is the answer's head without what is about one connection, and without values.
func head(h http.Header, keyless *redact.Secret) http.Header {
	for _, name := range hops {
		delete(h, name)
	}
	delete(h, "Alt-Svc") // it would lead the agent past this connection
	return without(h, keyless)
}

// without takes values out of headers.
func without(h http.Header, keyless *redact.Secret) http.Header {
	for name, values := range h {
		for i, text := range values {
			for _, m := range slices.Backward(keyless.Find([]byte(text))) {
				text = text[:m.From] + strings.Repeat("*", m.To-m.From) + text[m.To:]
			}
			values[i] = text
		}
		if len(keyless.Find([]byte(name))) > 0 {
			delete(h, name)
		}
	}
	return h
}

// switched passes bytes both ways behind a change of protocol. Nothing in them is replaced.
func switched(got *http.Response, keyless *redact.Secret, in *upload, out *link.Writer) error {
	server, ok := got.Body.(io.ReadWriteCloser)
	if !ok {
		return &refusal{http.StatusBadGateway, link.ReasonForm, "the server's change of protocol cannot be followed"}
	}
	to := got.Header.Get("Upgrade")
	answer := link.Answer{Status: got.StatusCode, Header: head(got.Header, keyless), Length: -1}
	answer.Header.Set("Connection", "Upgrade")
	answer.Header.Set("Upgrade", to)
	if err := out.Answer(answer); err != nil {
		return err
	}
	go func() {
		_, _ = io.Copy(server, in)
		server.Close()
	}()
	if _, err := io.Copy(out, server); err != nil {
		return err
	}
	return out.End(link.End{})
}

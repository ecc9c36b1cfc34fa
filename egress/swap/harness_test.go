package swap

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/egress/swap/inner"
	"clove.run/clove/egress/swap/link"
	"clove.run/clove/egress/swap/outer"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/secrets"
)

// soon bounds every wait of a test.
const soon = 20 * time.Second

// value is the secret of the tests; it begins with the prefix of its kind.
const value = "ghp_Zx81-kept-out-of-the-sandbox-93q"

// site is the name that the tests' server proves.
const site = "example.com"

// rig is one run's swap before a server of the test's. Both sides are in this process.
type rig struct {
	t      *testing.T
	swap   *Swap
	server *httptest.Server
	client *http.Client // the agent's
	port   uint16
	outer  chan *packet.Conn // its channel to the inner side, where the test is it

	mu     sync.Mutex // guards the following
	uses   []link.Use
	denied []link.Denied
	refuse link.Verdict // for each use
}

// inProcess has a side run in this process.
type inProcess struct {
	cancel func()
	err    chan error
}

func (p inProcess) Kill() error    { p.cancel(); return nil }
func (p inProcess) Failure() error { return errors.New("in this process") }

// sideOf is clove-swap without its confinement. taken gets the channel of an outer side that the test is; nil: it is the real one.
func sideOf(taken chan<- *packet.Conn, files ...*os.File) (process, error) {
	var conns []*packet.Conn
	for _, file := range files {
		raw, err := file.SyscallConn()
		if err != nil {
			return nil, err
		}
		fd := -1
		if err = errors.Join(raw.Control(func(of uintptr) { fd, err = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 3) }), err); err != nil {
			return nil, err
		}
		copied, err := passfd.New(fd)
		if err != nil {
			return nil, err
		}
		conns = append(conns, packet.New(copied))
	}
	p := inProcess{cancel: func() { conns[0].Close(); conns[1].Close() }, err: make(chan error, 1)}
	go func() {
		var order link.Order
		files, err := conns[0].Receive(&order)
		switch {
		case err != nil:
		case order.Outer != nil && taken != nil:
			err = conns[0].Send(link.Report{Ready: &link.Ready{}})
			taken <- conns[1]
			for err == nil {
				var files []*os.File
				files, err = conns[0].Receive(&link.Order{})
				packet.CloseAll(files)
			}
		case order.Outer != nil:
			err = outer.New(conns[0], conns[1]).Serve(*order.Outer, files...)
		case order.Inner != nil:
			err = inner.New(conns[0], conns[1]).Serve(*order.Inner, strings.NewReader(""))
		}
		p.err <- err
	}()
	return p, nil
}

// newRig has a server with a handler, and an agent whose connections to site lead through the swap.
func newRig(t *testing.T, terms secrets.Terms, handler http.HandlerFunc, set ...func(*httptest.Server)) (*rig, string) {
	t.Helper()
	r := &rig{t: t, server: httptest.NewUnstartedServer(handler)}
	r.server.EnableHTTP2 = true
	for _, change := range set {
		change(r.server)
	}
	r.server.StartTLS()
	t.Cleanup(r.server.Close)
	r.port = 443
	var taken chan<- *packet.Conn
	if r.server.Config.ReadTimeout != 0 {
		r.outer = make(chan *packet.Conn, 1)
		taken = r.outer
	}
	if terms.Hosts == nil {
		terms.Hosts = []string{site}
	}
	if terms.CA == "" {
		terms.CA = string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: r.server.Certificate().Raw}))
	}
	normal, err := terms.Normal()
	must(t, err)
	placeholder := secrets.NewPlaceholder(normal.Prefix)
	read, write, err := os.Pipe()
	must(t, err)
	go func() {
		defer write.Close()
		_ = json.NewEncoder(write).Encode(link.Values{"TOKEN": value})
	}()
	r.swap, err = start(Config{Secrets: []link.Secret{{Name: "TOKEN", Placeholder: placeholder, Terms: normal}}, Values: read, Use: r.use, Denied: r.note}, func(_ string, _ uint32, files ...*os.File) (process, error) {
		return sideOf(taken, files...)
	})
	must(t, err)
	t.Cleanup(func() { r.swap.Stop() })
	r.client = r.agent(site)
	return r, placeholder
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

func (r *rig) use(_ context.Context, _ *Swap, use link.Use) link.Verdict {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.uses = append(r.uses, use)
	return r.refuse
}

func (r *rig) note(d link.Denied) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.denied = append(r.denied, d)
}

// dials is a connection of the agent's that has begun TLS, and offers HTTP/1.1 alone.
func (r *rig) dials() *tls.Conn {
	r.t.Helper()
	conn, err := r.connect(site)
	must(r.t, err)
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.swap.CA())
	secure := tls.Client(conn, &tls.Config{ServerName: site, RootCAs: roots})
	r.t.Cleanup(func() { secure.Close() })
	must(r.t, secure.SetDeadline(time.Now().Add(soon)))
	return secure
}

// asAttacker marks a rig whose outer side is the test.
func asAttacker(s *httptest.Server) { s.Config.ReadTimeout = soon + 1 }

// attacker is an outer side that was taken over.
type attacker struct {
	*rig
	inner *packet.Conn
	last  uint64 // number of its newest connection
}

func (r *rig) attacker() *attacker { return &attacker{r, <-r.outer, 0} }

// connects makes a connection of the agent's, whose server is met.
func (a *attacker) connects() uint64 {
	a.t.Helper()
	conn, err := a.connect(site)
	must(a.t, err)
	a.t.Cleanup(func() { conn.Close() })
	a.last++
	must(a.t, a.inner.Send(link.ToInner{Await: &link.Await{Number: a.last}}))
	for {
		var m link.ToOuter
		if _, err := a.inner.Receive(&m); err != nil || m.Met != nil && m.Met.Error != "" {
			a.t.Fatalf("%+v, %v", m, err)
		}
		if m.Met != nil {
			return a.last
		}
	}
}

// asks makes a request, and returns all that comes back.
func (a *attacker) asks(h link.Head) string {
	a.t.Helper()
	bodyTo, body, err := os.Pipe()
	must(a.t, err)
	answer, answerTo, err := os.Pipe()
	must(a.t, err)
	defer answer.Close()
	must(a.t, a.inner.Send(link.ToInner{Request: &h}, bodyTo, answerTo))
	bodyTo.Close()
	answerTo.Close()
	_ = link.NewWriter(body).End(link.End{}) // a request that is refused is not read
	text, err := io.ReadAll(answer)
	must(a.t, err)
	body.Close()
	return string(text)
}

// used is how many uses were decided.
func (r *rig) used() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.uses)
}

// noted waits for the reports that a request has made.
func (r *rig) noted(n int) []link.Denied {
	r.t.Helper()
	for end := time.Now().Add(soon); ; time.Sleep(time.Millisecond) {
		r.mu.Lock()
		all := r.denied
		r.mu.Unlock()
		if len(all) >= n {
			return all
		}
		if time.Now().After(end) {
			r.t.Fatalf("%+v", all)
		}
	}
}

// agent is a client that believes the run's authority, and whose connections are to name.
func (r *rig) agent(name string) *http.Client {
	roots := x509.NewCertPool()
	roots.AppendCertsFromPEM(r.swap.CA())
	transport := &http.Transport{
		DialContext:     func(ctx context.Context, _, _ string) (net.Conn, error) { return r.connect(name) },
		TLSClientConfig: &tls.Config{RootCAs: roots}, ForceAttemptHTTP2: true,
	}
	r.t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport, Timeout: soon, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// connect is what broker and gate do for a connection of the agent.
func (r *rig) connect(name string) (net.Conn, error) {
	server, err := net.Dial("tcp", r.server.Listener.Addr().String())
	if err != nil {
		return nil, err
	}
	defer server.Close()
	file, err := server.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	defer file.Close()
	agent, err := r.swap.Connect(name, r.port, file)
	if err != nil {
		return nil, err
	}
	defer agent.Close()
	return net.FileConn(agent)
}

// got is an answer.
type got struct {
	status int
	header http.Header
	text   string
	err    error
}

func (r *rig) get(path string, header ...string) got { return r.ask("GET", path, "", header...) }

// ask makes a request with headers, as NAME: VALUE.
func (r *rig) ask(method, path, body string, header ...string) got {
	r.t.Helper()
	request, err := http.NewRequest(method, "https://"+site+path, strings.NewReader(body))
	must(r.t, err)
	if body == "" {
		request.Body, request.ContentLength = http.NoBody, 0
	}
	for _, line := range header {
		name, text, _ := strings.Cut(line, ": ")
		if name == "Host" {
			request.Host = text
			continue
		}
		request.Header.Add(name, text)
	}
	answer, err := r.client.Do(request)
	if err != nil {
		return got{err: err}
	}
	defer answer.Body.Close()
	text, err := io.ReadAll(answer.Body)
	return got{answer.StatusCode, answer.Header, string(text), err}
}

// echo is a server that repeats what it gets.
func echo(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	var head bytes.Buffer
	_ = r.Header.Write(&head)
	_, _ = io.WriteString(w, r.Method+" "+r.URL.RequestURI()+" "+r.Proto+"\n"+head.String()+"\n"+string(body))
}

// newCertificate is an authority that has signed nothing, in PEM form.
func newCertificate() (string, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", err
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "another"}, IsCA: true, BasicConstraintsValid: true, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour)}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), err
}

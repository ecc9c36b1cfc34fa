//go:build root

package swap

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/egress/swap/link"
	"clove.run/clove/secrets"
)

// way is one way from an agent to a server, as a client for it.
type way struct {
	name   string
	client *http.Client
	token  string
}

// token is as long as GitHub's are.
const token = "ghp_0123456789abcdefghijABCDEFGHIJ012345"

// bodyBytes is the length of a long answer.
const bodyBytes = 64 << 20

// ways are the straight one, one through a reverse proxy of net/http, and one through both processes of a swap. All speak TLS with each
// neighbour.
func ways(b *testing.B) (all []way, at string) {
	b.Helper()
	page := make([]byte, 64<<10)
	for i := range page {
		page[i] = "abcdefghijklmno\n"[i%16]
	}
	server := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/long" {
			_, _ = io.WriteString(w, "hello\n")
			return
		}
		w.Header().Set("Content-Length", fmt.Sprint(bodyBytes))
		for range bodyBytes / len(page) {
			_, _ = w.Write(page)
		}
	}))
	b.Cleanup(server.Close)
	to := func(address string) func(context.Context, string, string) (net.Conn, error) {
		return func(ctx context.Context, network, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, network, address)
		}
	}
	roots := x509.NewCertPool()
	roots.AddCert(server.Certificate())
	straight := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: roots}, DialContext: to(server.Listener.Addr().String())}
	target, err := url.Parse("https://" + site)
	if err != nil {
		b.Fatal(err)
	}
	proxy := httptest.NewTLSServer(&httputil.ReverseProxy{Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: straight})
	b.Cleanup(proxy.Close)
	reverse := x509.NewCertPool()
	reverse.AddCert(proxy.Certificate())

	terms, err := secrets.Terms{Hosts: []string{site}, CA: string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: server.Certificate().Raw}))}.Normal()
	if err != nil {
		b.Fatal(err)
	}
	read, write, err := os.Pipe()
	if err != nil {
		b.Fatal(err)
	}
	go func() {
		defer write.Close()
		_ = json.NewEncoder(write).Encode(link.Values{"TOKEN": token})
	}()
	placeholder := secrets.NewPlaceholder("")
	s, err := Start(Config{Program: filepath.Join(os.Getenv("CLOVE_BIN_DIR"), Program), IDs: [2]uint32{agent.ServiceID(os.Getpid(), 1), agent.ServiceID(os.Getpid(), 2)},
		Secrets: []link.Secret{{Name: "TOKEN", Placeholder: placeholder, Terms: terms}}, Values: read,
		Use: func(context.Context, *Swap, link.Use) link.Verdict { return link.Verdict{} }, Denied: func(d link.Denied) { b.Errorf("%+v", d) }})
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Stop() })
	own := x509.NewCertPool()
	own.AppendCertsFromPEM(s.CA())
	swapped := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: own}, DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
		return connected(ctx, s, server.Listener.Addr().String())
	}}
	all = append(all, mitmproxy(b, server.Listener.Addr().String())...)
	return append(all, []way{
		{"straight", &http.Client{Transport: straight}, token},
		{"reverse", &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: reverse}, DialContext: to(proxy.Listener.Addr().String())}}, token},
		{"swap", &http.Client{Transport: swapped}, placeholder},
	}...), "https://" + site
}

// mitmproxy is the way through that program, where it is installed.
func mitmproxy(b *testing.B, server string) []way {
	b.Helper()
	program, err := exec.LookPath("mitmdump")
	if err != nil {
		b.Log("mitmdump is not installed, and is not measured")
		return nil
	}
	free, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		b.Fatal(err)
	}
	address := free.Addr().String()
	free.Close()
	_, port, _ := net.SplitHostPort(address)
	c := exec.Command(program, "-q", "--mode", "reverse:https://"+server, "--ssl-insecure", "--listen-host", "127.0.0.1", "-p", port, "--set", "stream_large_bodies=1", "--set", "confdir="+b.TempDir())
	if err := c.Start(); err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	for end := time.Now().Add(time.Minute); ; time.Sleep(50 * time.Millisecond) {
		conn, err := net.Dial("tcp", address)
		if err == nil {
			conn.Close()
			break
		}
		if time.Now().After(end) {
			b.Fatal(err)
		}
	}
	to := func(ctx context.Context, network, _ string) (net.Conn, error) {
		return (&net.Dialer{}).DialContext(ctx, network, address)
	}
	return []way{{"mitmproxy", &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{InsecureSkipVerify: true}, DialContext: to}}, token}}
}

// connected is a connection through a swap.
func connected(ctx context.Context, s *Swap, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", address)
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	file, err := conn.(*net.TCPConn).File()
	if err != nil {
		return nil, err
	}
	relay, err := s.Connect(site, 443, file)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	defer relay.Close()
	return net.FileConn(relay)
}

func (w way) get(b *testing.B, url string) int64 {
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		b.Fatal(err)
	}
	r.Header.Set("Authorization", "Bearer "+w.token)
	answer, err := w.client.Do(r)
	if err != nil {
		b.Fatal(err)
	}
	defer answer.Body.Close()
	n, err := io.Copy(io.Discard, answer.Body)
	if err != nil || answer.StatusCode != http.StatusOK {
		b.Fatal(answer.Status, err)
	}
	return n
}

// BenchmarkRequest is a short request on a connection that is open.
func BenchmarkRequest(b *testing.B) {
	all, at := ways(b)
	for _, w := range all {
		b.Run(w.name, func(b *testing.B) {
			w.get(b, at+"/")
			for b.Loop() {
				w.get(b, at+"/")
			}
		})
	}
}

// BenchmarkConnection is a short request on a connection of its own.
func BenchmarkConnection(b *testing.B) {
	all, at := ways(b)
	for _, w := range all {
		b.Run(w.name, func(b *testing.B) {
			for b.Loop() {
				w.get(b, at+"/")
				w.client.CloseIdleConnections()
			}
		})
	}
}

// BenchmarkBody is an answer of 64 MiB.
func BenchmarkBody(b *testing.B) {
	all, at := ways(b)
	for _, w := range all {
		b.Run(w.name, func(b *testing.B) {
			b.SetBytes(bodyBytes)
			for b.Loop() {
				if n := w.get(b, at+"/long"); n != bodyBytes {
					b.Fatal(n)
				}
			}
		})
	}
}

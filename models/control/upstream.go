package control

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"net"
	"net/url"
	"os"
	"time"

	"golang.org/x/sys/unix"

	"clove.run/clove/agent"
	"clove.run/clove/internal/packet"
	"clove.run/clove/internal/passfd"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// upstream is clove-upstream.
type upstream struct {
	*process
	control *Control
	config  *config.Config // whose providers and keys it has
	calls   int            // in flight; control.mu guards it
}

// provider returns a clove-upstream that knows the present configuration.
func (c *Control) provider() (*upstream, error) {
	now := c.options.Config()
	return obtain(c, func() *upstream {
		if u := c.upstream; u != nil && u.config == now && !u.ended() {
			return u
		}
		return nil
	}, func() (*upstream, error) { return c.startUpstream(now) }, func(u *upstream) {
		old := c.upstream
		c.upstream = u
		if old != nil {
			c.retire(old)
		}
		go u.receive()
	})
}

func (c *Control) startUpstream(now *config.Config) (*upstream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	setup, err := c.setup(now)
	if err != nil {
		write.Close()
		return nil, err
	}
	go func() {
		defer write.Close()
		_ = json.NewEncoder(write).Encode(setup) // the process says that it could not read it
	}()
	p, err := c.start(upstreamProgram, read)
	if err != nil {
		return nil, err
	}
	return &upstream{process: p, control: c, config: now}, nil
}

// rootsFiles are where distributions keep the certificates of authorities.
var rootsFiles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

// ownFormats are the paths that a provider of clove's own serves.
var ownFormats = map[models.Format]string{
	models.OpenAIChat: "/v1/chat/completions", models.OpenAIResponses: "/v1/responses",
	models.AnthropicMessages: "/v1/messages", models.AnthropicCount: "/v1/messages/count_tokens",
}

// setup is what clove-upstream has to know, the keys among it.
func (c *Control) setup(now *config.Config) (link.Setup, error) {
	s := link.Setup{Providers: map[string]link.Provider{}}
	for _, path := range rootsFiles {
		if text, err := os.ReadFile(path); err == nil {
			s.Roots = text
			break
		}
	}
	for name, p := range now.Providers {
		to := link.Provider{Endpoints: map[models.Format]string{}, First: p.Timeouts.First, Pause: p.Timeouts.Between, Total: p.Timeouts.Total}
		for f, path := range ownFormats {
			if p.Own() {
				to.Endpoints[f] = "http://" + name + path
			} else if p.Endpoint(f) != "" {
				to.Endpoints[f] = p.Endpoint(f)
			}
		}
		if p.Key != "" {
			key, err := c.options.Secret(p.Key)
			if err != nil {
				return s, fmt.Errorf("provider %s: %w", name, err)
			}
			to.Key = key
		}
		roots, err := authorities(p)
		if err != nil {
			return s, err
		}
		to.Roots = roots
		s.Providers[name] = to
	}
	return s, nil
}

// authorities are a provider's own, which its certificate must be of; nil: it has none. A file
// without a certificate is refused: every call would fail.
func authorities(p *config.Provider) ([]byte, error) {
	if p.CA == "" {
		return nil, nil
	}
	text, err := os.ReadFile(p.CA)
	if err == nil {
		if block, _ := pem.Decode(text); block == nil || block.Type != "CERTIFICATE" {
			err = errors.New("there is no certificate in it")
		}
	}
	if err != nil {
		return nil, &agent.Error{Kind: agent.KindInvalid, Step: "models", Message: "cannot use ca of the provider " + p.Name + ": " + p.CA, Err: err,
			Hint: "it is a file of certificates in PEM form, which begins with -----BEGIN CERTIFICATE-----"}
	}
	return text, nil
}

// receive takes messages until the process ends.
func (u *upstream) receive() {
	for {
		var m link.FromUpstream
		files, err := u.conn.Receive(&m)
		packet.CloseAll(files) // an honest one sends none
		if err != nil {
			break
		}
		switch {
		case m.Done != nil:
			u.control.done(u, *m.Done)
		case m.More != 0:
			most := u.control.extend(u, m.More) // here: the call cannot end meanwhile
			_ = u.conn.Send(link.ToUpstream{More: &link.More{Call: m.More, MostOut: most}})
		case m.Dial != nil:
			go u.dial(*m.Dial)
		}
	}
	u.end()
	if !u.left.Load() {
		u.control.lost(u)
	}
}

// dialTime bounds the wait for a connection to a provider.
const dialTime = 30 * time.Second

// dial connects to a configured provider, and to nothing else.
func (u *upstream) dial(d link.Dial) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	answer := link.Socket{Number: d.Number}
	file, err := u.control.connect(ctx, u.config.Providers[d.Provider])
	if err != nil {
		answer.Error = err.Error()
		_ = u.conn.Send(link.ToUpstream{Socket: &answer}) // a process that is gone asks no more
		return
	}
	defer file.Close()
	_ = u.conn.Send(link.ToUpstream{Socket: &answer}, file)
}

// connect makes a connection to a provider.
func (c *Control) connect(ctx context.Context, p *config.Provider) (*os.File, error) {
	if p == nil {
		return nil, errors.New("no such provider")
	}
	if p.Own() {
		return c.scripted(p)
	}
	at, err := url.Parse(p.URL)
	if err != nil {
		return nil, err
	}
	port := at.Port()
	if port == "" {
		port = at.Scheme // its name is its port's
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "tcp", net.JoinHostPort(at.Hostname(), port))
	if err != nil {
		return nil, err
	}
	defer conn.Close()
	return conn.(*net.TCPConn).File()
}

// scripted makes a connection to one of clove's own providers, which is a process like
// clove-models: it reads what agents wrote.
func (c *Control) scripted(p *config.Provider) (*os.File, error) {
	own, err := obtain(c, func() *process {
		if own := c.scripts[p.Name]; own != nil && !own.ended() {
			return own
		}
		return nil
	}, func() (*process, error) { return c.startScripted(p) }, func(own *process) { c.scripts[p.Name] = own })
	if err != nil {
		return nil, err
	}
	near, far, err := passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
	if err != nil {
		return nil, err
	}
	defer far.Close()
	if err := own.conn.Send(link.ToFront{Client: true}, far); err != nil {
		near.Close()
		go own.end()
		return nil, fmt.Errorf("provider %s: %w", p.Name, err)
	}
	return near, nil
}

func (c *Control) startScripted(p *config.Provider) (*process, error) {
	text := ""
	if p.Script != "" {
		read, err := os.ReadFile(p.Script)
		if err != nil {
			return nil, err
		}
		text = string(read)
	}
	own, err := c.start(frontProgram)
	if err != nil {
		return nil, err
	}
	if err := own.conn.Send(link.ToFront{Script: &link.Script{Text: text}}); err != nil {
		own.end()
		return nil, err
	}
	return own, nil
}

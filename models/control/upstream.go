package control

import (
	"context"
	"encoding/json"
	"encoding/pem"
	"errors"
	"fmt"
	"maps"
	"net"
	"net/url"
	"os"
	"slices"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/internal/confine/keep"
	"clove.run/clove/internal/packet"
	"clove.run/clove/models"
	"clove.run/clove/models/config"
	"clove.run/clove/models/link"
)

// flight is a call that a clove-upstream makes. done and more are called by one goroutine.
type flight interface {
	done(link.Done)
	// more reserves more output, and returns how much there is then, in tokens; 0: no more.
	more() int64
	// lost is called where clove-upstream has ended without a report of the call.
	lost()
}

// upstreams are the processes of the providers' side: clove-upstream, and clove's own providers.
type upstreams struct {
	keep.Pool
	launcher *keep.Launcher
	config   func() *config.Config
	keys     keys

	// The pool guards the following.
	current *upstream // nil: none was needed yet
	scripts map[string]*keep.Process
	flying  int    // calls of all, also of those that are current no longer
	last    uint64 // number of a call
}

// upstream is clove-upstream.
type upstream struct {
	*keep.Process
	all     *upstreams
	config  *config.Config    // whose providers it has
	keys    keysDigest        // of the keys that it has
	flights map[uint64]flight // by number; all.mu guards it
}

// get returns a clove-upstream that knows the present configuration and keys. Where keys cannot be
// read, as while a file is written, those that were read before hold.
func (a *upstreams) get() (*upstream, error) {
	now := a.config()
	keys, err := a.keys.digest(now)
	return keep.Obtain(&a.Pool, func() *upstream {
		if u := a.current; u != nil && u.config == now && (u.keys == keys || err != nil) && !u.Ended() {
			return u
		}
		return nil
	}, func() (*upstream, error) { return a.start(now, keys) }, func(u *upstream) {
		old := a.current
		a.current = u
		if old != nil {
			a.retire(old)
		}
		go u.receive()
	})
}

// retire ends a clove-upstream whose configuration holds no longer, behind its last call.
// a.mu is held.
func (a *upstreams) retire(u *upstream) {
	if u != a.current && len(u.flights) == 0 {
		go u.End()
	}
}

// close refuses what comes. It returns the processes, and whether they make calls.
func (a *upstreams) close() (all []*keep.Process, flying bool) {
	a.Pool.Lock()
	defer a.Pool.Unlock()
	a.Close()
	for _, p := range a.scripts {
		all = append(all, p)
	}
	if a.current != nil {
		all = append(all, a.current.Process)
	}
	return all, a.flying > 0
}

// number is that of the next call.
func (a *upstreams) number() uint64 {
	a.Pool.Lock()
	defer a.Pool.Unlock()
	a.last++
	return a.last
}

// enter notes a call that is being made.
func (u *upstream) enter(number uint64, f flight) {
	u.all.Lock()
	defer u.all.Unlock()
	u.flights[number] = f
	u.all.flying++
}

// leave forgets a call. It reports whether it was there.
func (u *upstream) leave(number uint64) bool {
	u.all.Lock()
	defer u.all.Unlock()
	if u.flights[number] == nil {
		return false
	}
	delete(u.flights, number)
	u.all.flying--
	u.all.retire(u)
	return true
}

// flight returns a call by its number; nil: this process does not make it.
func (u *upstream) flight(number uint64) flight {
	u.all.Lock()
	defer u.all.Unlock()
	return u.flights[number]
}

// lost reports the calls that the process has not reported.
func (u *upstream) lost() {
	u.all.Lock()
	left := slices.Collect(maps.Values(u.flights))
	u.all.Unlock()
	for _, f := range left {
		f.lost()
	}
}

func (a *upstreams) start(now *config.Config, keys keysDigest) (*upstream, error) {
	read, write, err := os.Pipe()
	if err != nil {
		return nil, err
	}
	defer read.Close()
	to, err := setup(now, a.keys)
	if err != nil {
		write.Close()
		return nil, err
	}
	go func() {
		defer write.Close()
		_ = json.NewEncoder(write).Encode(to) // the process says that it could not read it
	}()
	p, err := a.launcher.Start(upstreamProgram, read)
	if err != nil {
		return nil, err
	}
	return &upstream{Process: p, all: a, config: now, keys: keys, flights: map[uint64]flight{}}, nil
}

// receive takes messages until the process ends.
func (u *upstream) receive() {
	for {
		var m link.FromUpstream
		files, err := u.Conn.Receive(&m)
		packet.CloseAll(files) // an honest one sends none
		if err != nil {
			break
		}
		switch {
		case m.Done != nil:
			if f := u.flight(m.Done.Number); f != nil {
				f.done(*m.Done)
			}
		case m.More != 0:
			more := link.More{Call: m.More}
			if f := u.flight(m.More); f != nil {
				more.MostOut = f.more() // here: the call cannot end meanwhile
			}
			_ = u.Conn.Send(link.ToUpstream{More: &more})
		case m.Dial != nil:
			go u.dial(*m.Dial)
		}
	}
	u.End()
	if !u.Left() {
		u.lost()
	}
}

// dialTime bounds the wait for a connection to a provider.
const dialTime = 30 * time.Second

// dial connects to a configured provider, and to nothing else.
func (u *upstream) dial(d link.Dial) {
	ctx, cancel := context.WithTimeout(context.Background(), dialTime)
	defer cancel()
	answer := link.Socket{Number: d.Number}
	file, err := u.all.connect(ctx, u.config.Providers[d.Provider])
	if err != nil {
		answer.Error = err.Error()
		_ = u.Conn.Send(link.ToUpstream{Socket: &answer}) // a process that is gone asks no more
		return
	}
	defer file.Close()
	_ = u.Conn.Send(link.ToUpstream{Socket: &answer}, file)
}

// connect makes a connection to a provider.
func (a *upstreams) connect(ctx context.Context, p *config.Provider) (*os.File, error) {
	if p == nil {
		return nil, errors.New("no such provider")
	}
	if p.Own() {
		return a.scripted(p)
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
func (a *upstreams) scripted(p *config.Provider) (*os.File, error) {
	own, err := keep.Obtain(&a.Pool, func() *keep.Process {
		if own := a.scripts[p.Name]; own != nil && !own.Ended() {
			return own
		}
		return nil
	}, func() (*keep.Process, error) { return a.startScripted(p) }, func(own *keep.Process) { a.scripts[p.Name] = own })
	if err != nil {
		return nil, err
	}
	near, far, err := stream()
	if err != nil {
		return nil, err
	}
	defer far.Close()
	if err := own.Conn.Send(link.ToFront{Client: true}, far); err != nil {
		near.Close()
		go own.End()
		return nil, fmt.Errorf("provider %s: %w", p.Name, err)
	}
	return near, nil
}

func (a *upstreams) startScripted(p *config.Provider) (*keep.Process, error) {
	text := ""
	if p.Script != "" {
		read, err := os.ReadFile(p.Script)
		if err != nil {
			return nil, err
		}
		text = string(read)
	}
	own, err := a.launcher.Start(frontProgram)
	if err != nil {
		return nil, err
	}
	if err := own.Conn.Send(link.ToFront{Script: &link.Script{Text: text}}); err != nil {
		own.End()
		return nil, err
	}
	return own, nil
}

// rootsFiles are where distributions keep the certificates of authorities.
var rootsFiles = []string{"/etc/ssl/certs/ca-certificates.crt", "/etc/pki/tls/certs/ca-bundle.crt", "/etc/ssl/cert.pem"}

// ownFormats are the paths that a provider of clove's own serves.
var ownFormats = map[models.Format]string{
	models.OpenAIChat: "/v1/chat/completions", models.OpenAIResponses: "/v1/responses",
	models.AnthropicMessages: "/v1/messages", models.AnthropicCount: "/v1/messages/count_tokens",
}

// setup is what clove-upstream has to know, the keys among it.
func setup(now *config.Config, keys keys) (link.Setup, error) {
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
		key, own, err := keys.of(p)
		if err != nil {
			return s, fmt.Errorf("provider %s: %w", name, err)
		}
		to.Key = key
		if p.Subscription != nil {
			to.Subscription, to.Account = p.Subscription.Client, p.Account
		}
		roots, err := authorities(p)
		if err != nil {
			return s, err
		}
		to.Roots = append(roots, own...) // one has them, and no more: fits
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

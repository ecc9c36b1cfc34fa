package resolver

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"
	"strings"
	"time"

	"golang.org/x/sync/singleflight"

	"clove.run/clove/egress/dnsmsg"
)

const (
	// tryTimeout bounds one query to one server. The C library's default of 5 s leaves a
	// client no time for the second server.
	tryTimeout = 2 * time.Second
	// rounds is the C library's default (resolv.conf(5), attempts).
	rounds = 2
	// flightTimeout ends a query whose callers may all have given up.
	flightTimeout = 15 * time.Second
	// maxFlights bounds the sockets of concurrent queries.
	maxFlights = 64
	// hostsTTL is short, because changes of the file take effect at once.
	hostsTTL = 10 * time.Second
)

// Errors of Lookup, for errors.Is.
var (
	ErrNoServers = errors.New("no name server is configured")
	ErrNoAnswer  = errors.New("no name server answered")
)

// Config says which servers to query.
type Config struct {
	// Servers, if given, are queried in this order, and no file is read. Port 0 means 53.
	Servers []netip.AddrPort
	// Dial connects to a server over udp or tcp; nil: from this process's network.
	Dial func(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error)
	// NoFiles is for a Dial into another network, for which the host's files are not valid.
	// No file is read then.
	NoFiles bool
	// ResolvConf and Hosts are other paths of these files; empty means the C library's.
	ResolvConf, Hosts string
}

// Resolver is safe for concurrent use.
type Resolver struct {
	servers []netip.AddrPort // those of Config
	conf    *followed[resolvConf]
	hosts   *followed[hosts]
	cache   *cache
	flights singleflight.Group
	slots   chan struct{}
	dial    func(ctx context.Context, network string, server netip.AddrPort) (net.Conn, error)
	now     func() time.Time
	timeout time.Duration // of one try
}

// New makes a resolver. It opens nothing yet.
func New(config Config) *Resolver {
	r := &Resolver{cache: newCache(), slots: make(chan struct{}, maxFlights), dial: config.Dial, now: time.Now, timeout: tryTimeout}
	if r.dial == nil {
		r.dial = dial
	}
	for _, server := range config.Servers {
		r.servers = append(r.servers, withPort(server))
	}
	if len(r.servers) == 0 && !config.NoFiles {
		r.conf = follow(or(config.ResolvConf, "/etc/resolv.conf"), parseResolvConf)
		r.hosts = follow(or(config.Hosts, "/etc/hosts"), parseHosts)
	}
	return r
}

func or(path, otherwise string) string {
	if path == "" {
		return otherwise
	}
	return path
}

func withPort(server netip.AddrPort) netip.AddrPort {
	if server.Port() != 0 {
		return server
	}
	return netip.AddrPortFrom(server.Addr(), 53)
}

// SearchDomains returns those of the host's resolv.conf, lower case, without final dots;
// none with Config.Servers.
func (r *Resolver) SearchDomains() []string {
	if r.conf == nil {
		return nil
	}
	conf, _ := r.conf.get(r.now())
	return slices.Clone(conf.search)
}

// Lookup queries the records of class IN and of this type for name, which is a full name
// with or without the final dot. The caller owns the reply. A server's refusal or failure
// is a reply with RCodeServerFailure. The error is ErrNoServers, ErrNoAnswer, or the
// context's.
func (r *Resolver) Lookup(ctx context.Context, name string, qtype uint16) (*dnsmsg.Reply, error) {
	name = strings.ToLower(strings.TrimSuffix(name, "."))
	if reply := r.fromHosts(name, qtype); reply != nil {
		return reply, nil
	}
	servers, edition := r.currentServers()
	key := fmt.Sprintf("%d %d %s", edition, qtype, name)
	if kept, ok := r.cache.get(key, r.now()); ok {
		return kept.reply(r.now())
	}
	flight := r.flights.DoChan(key, func() (any, error) {
		// Other callers may share the query, so the first caller's cancellation must not end it.
		ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), flightTimeout)
		defer cancel()
		return r.fly(ctx, servers, key, name, qtype)
	})
	select {
	case <-ctx.Done():
		return nil, ctx.Err()
	// Each caller parses the packed answer for itself, because filtering changes a Reply.
	case result := <-flight:
		if result.Err != nil {
			return nil, result.Err
		}
		return result.Val.(entry).reply(r.now())
	}
}

// fromHosts answers from /etc/hosts. A name that has only addresses of the other family
// gets an empty answer: a server's answer could give the name two meanings.
func (r *Resolver) fromHosts(name string, qtype uint16) *dnsmsg.Reply {
	if r.hosts == nil || (qtype != dnsmsg.TypeA && qtype != dnsmsg.TypeAAAA) {
		return nil
	}
	names, _ := r.hosts.get(r.now())
	addrs, ok := names[name]
	if !ok {
		return nil
	}
	return dnsmsg.NewReply(name, qtype, dnsmsg.RCodeSuccess).WithAddresses(hostsTTL, addrs...)
}

// currentServers also returns the edition of the configuration. It is part of the cache
// key: after a change, for example when a VPN comes up, older answers are not used.
func (r *Resolver) currentServers() ([]netip.AddrPort, int) {
	if r.conf == nil {
		return r.servers, 0
	}
	conf, edition := r.conf.get(r.now())
	return conf.servers, edition
}

// fly queries the servers and caches the answer. It looks into the cache first: an earlier
// flight may have ended since the caller looked.
func (r *Resolver) fly(ctx context.Context, servers []netip.AddrPort, key, name string, qtype uint16) (any, error) {
	if kept, ok := r.cache.get(key, r.now()); ok {
		return kept, nil
	}
	select {
	case r.slots <- struct{}{}:
		defer func() { <-r.slots }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	reply, err := r.ask(ctx, servers, name, qtype)
	if err != nil {
		return nil, err
	}
	message, err := reply.Pack()
	if err != nil {
		return nil, err
	}
	kept := entry{message: message, born: r.now()}
	if life := lifetime(reply); life > 0 {
		kept.expires = kept.born.Add(life)
		r.cache.put(key, kept)
	}
	return kept, nil
}

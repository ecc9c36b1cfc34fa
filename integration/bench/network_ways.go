package main

import "path/filepath"

// The peers of the network's table.
const (
	peerDirect    = "direct"
	peerClove     = "clove"
	peerTinyproxy = "tinyproxy"
	peerSquid     = "squid"
)

// proxies are the peers that clove is compared with.
var proxies = []string{peerTinyproxy, peerSquid}

var wayKinds = []kind[*world, *way]{
	{peerDirect, "the client connects itself, over a cable within the machine", openDirect},
	{peerClove, "the client runs in a sandbox; one rule by address, one by name", openClove},
	{peerTinyproxy, "CONNECT, the same rules as filters; looks names up itself, each time", openTinyproxy},
	{peerSquid, "CONNECT, the same rules as access lists; no cache, no log; remembers names", openSquid},
}

// way is an opened way with a client on it.
type way struct {
	name   string
	client *remote
	proxy  bool
	gated  bool
}

// can reports whether an order makes sense on this way: a proxy answers no DNS queries,
// and nothing denies a direct connection.
func (w *way) can(o order) bool {
	return (o.Questions == 0 || !w.proxy) && (!o.Denied || w.proxy || w.gated)
}

// client starts a client by argv, which ends with this binary's path. For clove, argv
// starts the sandbox around it.
func (w *world) client(proxy, server string, argv ...string) (*remote, error) {
	return w.remote(append(argv, "client", proxy, server)...)
}

func openDirect(w *world) (*way, error) {
	c, err := w.client("", nameServer+":53", w.self)
	return &way{name: peerDirect, client: c}, err
}

// gateName is the address at which an agent reaches its name server.
const gateName = "127.0.0.11:53"

// openClove runs the client in a sandbox, with a rule by address, one by name, and a
// rate that does not limit the benchmark.
func openClove(w *world) (*way, error) {
	const inside = "/client"
	c, err := w.client("", gateName, w.clove, "run", "--rm", "--name", "bench-network", "-v", w.self+":"+inside+":ro",
		"--allow", serverAddress+":"+portByAddress, "--allow", "*.bench.example:"+portByName, "--dns", nameServer,
		"--net-rate", "65535", "--", inside)
	return &way{name: peerClove, client: c, gated: true}, err
}

const (
	tinyproxyAddress = "127.0.0.1:8888"
	squidAddress     = "127.0.0.1:3128"
)

// openProxy starts a proxy from a configuration file, as an unprivileged user and in
// the foreground, so that it is this process's child.
func (w *world) openProxy(name, address, config string, argv func(file string) []string) (*way, error) {
	dir := filepath.Join(w.dir, name)
	if err := nobodysFolder(dir, map[string]string{"conf": config, "filter": tinyproxyFilter}); err != nil {
		return nil, err
	}
	p, err := w.start(asNobody(argv(filepath.Join(dir, "conf"))...))
	if err != nil {
		return nil, err
	}
	if err := p.await(w.here, address); err != nil {
		return nil, err
	}
	c, err := w.client(address, nameServer+":53", w.self)
	return &way{name: name, client: c, proxy: true}, err
}

func openTinyproxy(w *world) (*way, error) {
	dir := filepath.Join(w.dir, peerTinyproxy)
	return w.openProxy(peerTinyproxy, tinyproxyAddress, tinyproxyConfig(dir), func(file string) []string {
		return []string{"tinyproxy", "-d", "-c", file}
	})
}

func openSquid(w *world) (*way, error) {
	dir := filepath.Join(w.dir, peerSquid)
	return w.openProxy(peerSquid, squidAddress, squidConfig(dir), func(file string) []string {
		return []string{"squid", "-N", "-f", file}
	})
}

// tinyproxyFilter are the rules in the form of tinyproxy.conf(5), which filters hosts
// and ports separately.
const tinyproxyFilter = `^93\.184\.216\.34$
\.bench\.example$
`

// tinyproxyConfig has the same rules as clove's run, and as little logging as possible.
func tinyproxyConfig(dir string) string {
	return `Port 8888
Listen 127.0.0.1
Timeout 60
MaxClients 256
Allow 127.0.0.1
ConnectPort ` + portByAddress + `
ConnectPort ` + portByName + `
Filter "` + dir + `/filter"
FilterDefaultDeny Yes
FilterExtended On
LogLevel Critical
LogFile "` + dir + `/log"
`
}

// squidConfig turns off what squid does besides: cache, logs, statistics of the
// network.
func squidConfig(dir string) string {
	return `http_port ` + squidAddress + `
acl CONNECT method CONNECT
acl name dstdomain .bench.example
acl address dst ` + serverAddress + `
acl by_name port ` + portByName + `
acl by_address port ` + portByAddress + `
http_access allow CONNECT name by_name
http_access allow CONNECT by_address address
http_access deny all
cache deny all
access_log none
cache_log ` + dir + `/log
coredump_dir ` + dir + `
pid_filename none
netdb_filename none
pinger_enable off
dns_nameservers ` + nameServer + `
shutdown_lifetime 0 seconds
`
}

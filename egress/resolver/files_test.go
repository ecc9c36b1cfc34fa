package resolver

import (
	"net/netip"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/egress/dnsmsg"
)

func TestResolvConfIsReadAsTheCLibraryDoes(t *testing.T) {
	t.Parallel()
	server := func(texts ...string) (servers []netip.AddrPort) {
		for _, text := range texts {
			servers = append(servers, netip.AddrPortFrom(netip.MustParseAddr(text), 53))
		}
		return servers
	}
	for text, want := range map[string]resolvConf{
		"": {},
		"nameserver 127.0.0.53\noptions edns0 trust-ad\nsearch .\n":                      {servers: server("127.0.0.53")}, // systemd-resolved's
		"nameserver 192.0.2.1\nnameserver 2001:db8::1 # second\n":                        {servers: server("192.0.2.1", "2001:db8::1")},
		"nameserver fe80::1%eth0":                                                        {servers: server("fe80::1%eth0")},
		"nameserver 1.1.1.1\r\nsearch a.test\r\n":                                        {servers: server("1.1.1.1"), search: []string{"a.test"}},
		"# nameserver 192.0.2.1\n;nameserver 192.0.2.2\n nameserver 1.1.1.1":             {},
		"nameserver\nnameserver ns.test\nnameserver 010.0.0.1\nbogus x\n":                {},
		"nameserver 1.1.1.1\nnameserver 1.1.1.2\nnameserver 1.1.1.3\nnameserver 1.1.1.4": {servers: server("1.1.1.1", "1.1.1.2", "1.1.1.3")},
		"domain a.test\nsearch B.Test. c.test b.test\n":                                  {search: []string{"b.test", "c.test"}},
		"search b.test\ndomain a.test":                                                   {search: []string{"a.test"}},
	} {
		if got := parseResolvConf(strings.NewReader(text)); !reflect.DeepEqual(got, want) {
			t.Errorf("%q: %+v, want %+v", text, got, want)
		}
	}
}

func TestHostsAreRead(t *testing.T) {
	t.Parallel()
	got := parseHosts(strings.NewReader("127.0.0.1\tlocalhost\n::1 localhost ip6-localhost # all\n#1.1.1.1 no\n\n192.0.2.1 DB.Test. db\n192.0.2.1 db\nfe80::1%eth0 zoned\n1.2.3 bad\n10.0.0.1\n"))
	addr := netip.MustParseAddr
	want := hosts{
		"localhost": {addr("127.0.0.1"), addr("::1")}, "ip6-localhost": {addr("::1")},
		"db.test": {addr("192.0.2.1")}, "db": {addr("192.0.2.1")},
	}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("%v", got)
	}
}

// host is a resolver of a host with these two files.
func host(t *testing.T, conf, names string) (r *Resolver, confPath, hostsPath string, passed *clock) {
	t.Helper()
	dir := t.TempDir()
	confPath, hostsPath = filepath.Join(dir, "resolv.conf"), filepath.Join(dir, "hosts")
	replace(t, confPath, conf)
	replace(t, hostsPath, names)
	passed = newClock()
	r = New(Config{ResolvConf: confPath, Hosts: hostsPath})
	r.now, r.timeout = passed.now, 100*time.Millisecond
	return r, confPath, hostsPath, passed
}

// replace puts a new file in place of the old one by rename, as managers of such files do.
func replace(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path+".new", []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Rename(path+".new", path); err != nil {
		t.Fatal(err)
	}
}

func TestHostsComeFirstAndAreFollowed(t *testing.T) {
	t.Parallel()
	r, _, path, passed := host(t, "", "192.0.2.1 db.test\n")
	look := func(name string, qtype uint16) []string {
		t.Helper()
		reply, err := r.Lookup(deadline(t), name, qtype)
		if err != nil {
			return []string{err.Error()}
		}
		return addresses(reply)
	}
	noServers := []string{ErrNoServers.Error()}
	if got := look("DB.test.", dnsmsg.TypeA); !slices.Equal(got, []string{"192.0.2.1"}) {
		t.Errorf("%q", got)
	}
	if got := look("db.test", dnsmsg.TypeAAAA); len(got) != 0 {
		t.Errorf("of the other family: %q", got)
	}
	if got := look("db.test", dnsmsg.TypeHTTPS); !slices.Equal(got, noServers) {
		t.Errorf("of another type: %q", got)
	}
	replace(t, path, "192.0.2.2 db.test\n")
	if got := look("db.test", dnsmsg.TypeA); !slices.Equal(got, []string{"192.0.2.1"}) {
		t.Errorf("looked at again within the second: %q", got)
	}
	passed.pass(lookInterval)
	if got := look("db.test", dnsmsg.TypeA); !slices.Equal(got, []string{"192.0.2.2"}) {
		t.Errorf("not followed: %q", got)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	passed.pass(lookInterval)
	if got := look("db.test", dnsmsg.TypeA); !slices.Equal(got, noServers) {
		t.Errorf("without the file: %q", got)
	}
}

// TestResolvConfIsFollowed: a test cannot use port 53, so it checks the servers and does not
// query them.
func TestResolvConfIsFollowed(t *testing.T) {
	t.Parallel()
	r, path, _, passed := host(t, "nameserver 192.0.2.1\nsearch a.test\n", "")
	see := func(server string, edition int, search ...string) {
		t.Helper()
		domains := r.SearchDomains() // this must not hide the change from the next call
		servers, got := r.currentServers()
		if len(servers) != 1 || servers[0].String() != server || got != edition || !slices.Equal(domains, search) {
			t.Errorf("%v, edition %d, search %q", servers, got, domains)
		}
	}
	see("192.0.2.1:53", 1, "a.test")
	replace(t, path, "nameserver 192.0.2.2\n")
	see("192.0.2.1:53", 1, "a.test")
	passed.pass(lookInterval)
	see("192.0.2.2:53", 2)
	passed.pass(lookInterval)
	see("192.0.2.2:53", 2)
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	passed.pass(lookInterval)
	if servers, _ := r.currentServers(); len(servers) != 0 {
		t.Errorf("without the file: %v", servers)
	}
}

// TestOldServersAnswersAreForgotten: under a VPN, names mean something else.
func TestOldServersAnswersAreForgotten(t *testing.T) {
	t.Parallel()
	r, path, _, passed := host(t, "", "")
	kept := entry{message: must(t, dnsmsg.NewReply("a.test", dnsmsg.TypeA, dnsmsg.RCodeNameError)), born: passed.now(), expires: passed.now().Add(time.Hour)}
	r.currentServers()
	r.cache.put("1 1 a.test", kept)
	if reply, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA); err != nil { // the control: it is found
		t.Fatalf("%v, %v", reply, err)
	}
	replace(t, path, "# empty\n")
	passed.pass(lookInterval)
	if reply, err := r.Lookup(deadline(t), "a.test", dnsmsg.TypeA); err == nil {
		t.Errorf("%v", reply)
	}
}

func must(t *testing.T, reply *dnsmsg.Reply) []byte {
	t.Helper()
	message, err := reply.Pack()
	if err != nil {
		t.Fatal(err)
	}
	return message
}

// TestGivenServersReadNoFile: --dns means only these servers.
func TestGivenServersReadNoFile(t *testing.T) {
	t.Parallel()
	_, conf, names, _ := host(t, "search a.test\n", "192.0.2.1 db.test\n")
	server := serve(t, records(t, "db.test. 60 IN A 198.51.100.7"))
	r := New(Config{Servers: []netip.AddrPort{server.addr}, ResolvConf: conf, Hosts: names})
	reply, err := r.Lookup(deadline(t), "db.test", dnsmsg.TypeA)
	if err != nil || !slices.Equal(addresses(reply), []string{"198.51.100.7"}) || r.SearchDomains() != nil {
		t.Errorf("%v, %v, search %q", reply, err, r.SearchDomains())
	}
	portless := New(Config{Servers: []netip.AddrPort{netip.AddrPortFrom(netip.MustParseAddr("192.0.2.1"), 0)}})
	if portless.servers[0].Port() != 53 {
		t.Errorf("%v", portless.servers)
	}
}

func FuzzFiles(f *testing.F) {
	f.Add("nameserver 127.0.0.53\noptions edns0\nsearch . a.test\n")
	f.Add("127.0.0.1 localhost # x\n::1\tlocalhost\nfe80::1%lo z\n")
	f.Fuzz(func(t *testing.T, text string) {
		conf := parseResolvConf(strings.NewReader(text))
		if len(conf.servers) > maxServers {
			t.Errorf("%v", conf.servers)
		}
		for name, addrs := range parseHosts(strings.NewReader(text)) {
			if len(addrs) == 0 || name != strings.ToLower(name) {
				t.Errorf("%q: %v", name, addrs)
			}
		}
	})
}

package resolver

import (
	"bufio"
	"io"
	"net/netip"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// lookInterval is how often a file is looked at, at most.
	lookInterval = time.Second
	// maxFileBytes bounds what is read; block lists in hosts files reach a few MiB.
	maxFileBytes = 16 << 20
	// maxServers is MAXNS of resolv.conf(5).
	maxServers = 3
)

// followed is the parsed content of a file, read again when it was changed or
// replaced. What cannot be read is empty.
type followed[T any] struct {
	path  string
	parse func(io.Reader) T

	mu      sync.Mutex // guards what follows
	looked  time.Time
	seen    os.FileInfo // nil: not there
	value   T
	edition int // how often the content was read
}

func follow[T any](path string, parse func(io.Reader) T) *followed[T] {
	return &followed[T]{path: path, parse: parse}
}

// get also says which edition of the file this is.
func (f *followed[T]) get(now time.Time) (value T, edition int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.looked.IsZero() && now.Sub(f.looked) < lookInterval {
		return f.value, f.edition
	}
	f.looked = now
	info, err := os.Stat(f.path) // of the link's target: resolv.conf is often one
	if err != nil {
		info = nil
	}
	if same(f.seen, info) {
		return f.value, f.edition
	}
	f.seen, f.value = info, f.read()
	f.edition++
	return f.value, f.edition
}

func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

func (f *followed[T]) read() T {
	var none T
	file, err := os.Open(f.path)
	if err != nil {
		return none
	}
	defer file.Close()
	return f.parse(io.LimitReader(file, maxFileBytes))
}

// resolvConf is what counts of resolv.conf(5). Options are left out: they tune
// the C library, and the timeouts here are bounded anyway.
type resolvConf struct {
	servers []netip.AddrPort
	search  []string
}

// ServersOf are the name servers of the text of a resolv.conf, in its order.
func ServersOf(text string) []netip.AddrPort { return parseResolvConf(strings.NewReader(text)).servers }

func parseResolvConf(r io.Reader) resolvConf {
	var conf resolvConf
	for line := range lines(r) {
		// The C library wants the keyword in the first column.
		fields := strings.Fields(line)
		if len(fields) == 0 || !strings.HasPrefix(line, fields[0]) {
			continue
		}
		switch fields[0] {
		case "nameserver":
			if len(fields) < 2 || len(conf.servers) == maxServers {
				continue
			}
			if addr, err := netip.ParseAddr(fields[1]); err == nil {
				conf.servers = append(conf.servers, netip.AddrPortFrom(addr, 53))
			}
		case "search", "domain": // the last one counts
			conf.search = nil
			for _, domain := range fields[1:] {
				domain = strings.ToLower(strings.TrimSuffix(domain, "."))
				if domain != "" && !slices.Contains(conf.search, domain) {
					conf.search = append(conf.search, domain)
				}
			}
		}
	}
	return conf
}

// hosts are the addresses of names, lower case, as in hosts(5).
type hosts map[string][]netip.Addr

func parseHosts(r io.Reader) hosts {
	names := hosts{}
	for line := range lines(r) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(fields[0])
		if err != nil || addr.Zone() != "" { // a record has no room for a zone
			continue
		}
		for _, name := range fields[1:] {
			name = strings.ToLower(strings.TrimSuffix(name, "."))
			if !slices.Contains(names[name], addr) {
				names[name] = append(names[name], addr)
			}
		}
	}
	return names
}

// lines ends at one that is longer than any that a person wrote.
func lines(r io.Reader) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		scanner := bufio.NewScanner(r)
		for scanner.Scan() {
			if !yield(scanner.Text()) {
				return
			}
		}
	}
}

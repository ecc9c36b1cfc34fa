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
	// lookInterval bounds how often a file is checked for changes.
	lookInterval = time.Second
	// maxFileBytes bounds what is read. Block lists in hosts files have a few MiB.
	maxFileBytes = 16 << 20
	// maxServers is MAXNS of resolv.conf(5).
	maxServers = 3
)

// followed is the parsed content of a file. It is read again after the file was changed or
// replaced. An unreadable file counts as empty.
type followed[T any] struct {
	path  string
	parse func(io.Reader) T

	mu      sync.Mutex  // guards the fields below
	looked  time.Time   // the last check
	seen    os.FileInfo // nil: the file did not exist
	value   T
	edition int // incremented with each read of the content
}

func follow[T any](path string, parse func(io.Reader) T) *followed[T] {
	return &followed[T]{path: path, parse: parse}
}

// get returns the content and its edition.
func (f *followed[T]) get(now time.Time) (value T, edition int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if !f.looked.IsZero() && now.Sub(f.looked) < lookInterval {
		return f.value, f.edition
	}
	f.looked = now
	info, err := os.Stat(f.path) // of the target: resolv.conf is often a symbolic link
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

// same compares the file's identity too: an editor replaces a file by a rename, possibly
// with the same size and time.
func same(a, b os.FileInfo) bool {
	if a == nil || b == nil {
		return a == nil && b == nil
	}
	return os.SameFile(a, b) && a.ModTime().Equal(b.ModTime()) && a.Size() == b.Size()
}

// read reports no error: like the C library, it treats an unreadable file as empty.
func (f *followed[T]) read() T {
	var none T
	file, err := os.Open(f.path)
	if err != nil {
		return none
	}
	defer file.Close()
	return f.parse(io.LimitReader(file, maxFileBytes))
}

// resolvConf are the parts of resolv.conf(5) that are used. Options are ignored: they tune
// the C library, and the timeouts here are bounded anyway.
type resolvConf struct {
	servers []netip.AddrPort
	search  []string
}

// ServersOf returns the name servers of a resolv.conf's text, in its order.
func ServersOf(text string) []netip.AddrPort { return parseResolvConf(strings.NewReader(text)).servers }

// parseResolvConf follows the C library: at most three servers, and the last search or
// domain line counts.
func parseResolvConf(r io.Reader) resolvConf {
	var conf resolvConf
	for line := range lines(r) {
		// The C library requires the keyword in the first column.
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

// hosts maps lower-case names to addresses, from hosts(5).
type hosts map[string][]netip.Addr

// parseHosts keeps all addresses of a name, from all its lines.
func parseHosts(r io.Reader) hosts {
	names := hosts{}
	for line := range lines(r) {
		line, _, _ = strings.Cut(line, "#")
		fields := strings.Fields(line)
		if len(fields) < 2 {
			continue
		}
		addr, err := netip.ParseAddr(fields[0])
		if err != nil || addr.Zone() != "" { // a DNS record cannot have a zone
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

// lines stops at a line above bufio.Scanner's 64 KiB.
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

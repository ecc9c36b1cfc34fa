package mcp

import (
	"crypto/sha256"
	"crypto/subtle"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"
)

// local reports whether a Host or the host of an Origin, with a port or without, is this machine by a name
// that no DNS server answers for.
func local(host string) bool {
	if name, _, err := net.SplitHostPort(host); err == nil {
		host = name
	}
	if strings.EqualFold(host, "localhost") {
		return true
	}
	address, err := netip.ParseAddr(strings.TrimSuffix(strings.TrimPrefix(host, "["), "]"))
	return err == nil && (address == netip.AddrFrom4([4]byte{127, 0, 0, 1}) || address == netip.IPv6Loopback())
}

// ours reports whether a request can come only from a program of this machine, or from a page of it. Browsers
// set Origin on what a page posts; null is that of pages that hide theirs.
func ours(r *http.Request) bool {
	if !local(r.Host) {
		return false
	}
	for _, origin := range r.Header.Values("Origin") {
		u, err := url.Parse(origin)
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || !local(u.Host) {
			return false
		}
	}
	return true
}

// authorized reports whether a request has the token, which takes the same time whatever it has.
func authorized(r *http.Request, token string) bool {
	if token == "" {
		return true
	}
	var has string
	if values := r.Header.Values("Authorization"); len(values) == 1 {
		if scheme, value, _ := strings.Cut(values[0], " "); strings.EqualFold(scheme, "Bearer") {
			has = strings.TrimSpace(value)
		}
	}
	a, b := sha256.Sum256([]byte(has)), sha256.Sum256([]byte(token))
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1
}

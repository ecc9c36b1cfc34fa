package egress

import (
	"fmt"
	"strings"
)

// hinted adds the hint, what to write instead.
func hinted(r *refusal, hint string) *refusal {
	r.hint = hint
	return r
}

// withHint suggests the target for host, which was found in a text that is not a target. It
// adds no hint if host is not valid either.
func withHint(r *refusal, host, ports string) *refusal {
	text := host
	if ports != "" {
		text += ":" + ports
	}
	for _, candidate := range []string{text, host} {
		if !strings.ContainsAny(candidate, "/@") {
			if t, err := parseTarget(candidate); err == nil {
				return hinted(r, "write "+t.String())
			}
		}
	}
	return r
}

// schemePorts are default ports of URLs that users paste.
var schemePorts = map[string]string{
	"http": "80", "ws": "80", "https": "443", "wss": "443", "ssh": "22", "git": "9418", "ftp": "21", "smtp": "25",
	"postgres": "5432", "postgresql": "5432", "mysql": "3306", "redis": "6379", "rediss": "6379", "amqp": "5672", "mongodb": "27017",
}

// notAURL suggests the target for a URL.
func notAURL(scheme, after string) *refusal {
	r := refuse("a target is no URL, and %s is no protocol that it can begin with", quote(scheme+"://"))
	authority := after
	if end := strings.IndexAny(authority, "/?#"); end >= 0 {
		authority = authority[:end]
	}
	authority = authority[strings.LastIndexByte(authority, '@')+1:]
	if t, err := parseTarget(authority); err == nil && !strings.Contains(authority, "://") {
		if port := schemePorts[strings.ToLower(scheme)]; port != "" && t.ports == (portRange{}) {
			t, _ = parseTarget(fmt.Sprintf("%s:%s", t.place(), port))
		}
		return hinted(r, "write "+t.String())
	}
	return hinted(r, "write tcp://HOST:PORT or udp://HOST:PORT, or leave the protocol out")
}

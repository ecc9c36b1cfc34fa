package people

import (
	"context"
	"net/url"

	"clove.run/clove/agent"
)

type fetchArguments struct {
	place
	URL     string  `json:"url"`
	Timeout seconds `json:"timeout_seconds"`
}

// fetchScript asks with a program that the sandbox has. The network's rules hold for each hop.
const fetchScript = `if command -v curl >/dev/null 2>&1; then exec curl -sS -L --max-redirs 5 --proto =http,https --max-filesize 10485760 --fail-with-body -- "$1"; fi
if command -v python3 >/dev/null 2>&1; then exec python3 -c 'import sys, urllib.request
with urllib.request.urlopen(sys.argv[1]) as answer: sys.stdout.buffer.write(answer.read(10 << 20))' "$1"; fi
exec wget -q -O - -- "$1"`

// fetch reads a URL from inside: with the network of the sandbox, and none of the host's.
func (b *sandbox) fetch(ctx context.Context, a fetchArguments) (answer, error) {
	u, err := url.Parse(a.URL)
	if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
		return answer{}, wrong("write one as https://example.com/page", "%.128q is no URL of http or https", a.URL)
	}
	if u.User != nil {
		return answer{}, wrong("omit the part before @", "a URL with a password is not asked for")
	}
	h, err := b.live(ctx)
	if err != nil {
		return answer{}, err
	}
	if h.spec.Network == agent.NetworkNone {
		return answer{}, &agent.Error{Kind: agent.KindPrivilege, Message: "the sandbox has no network",
			Hint: "the user starts clove mcp with --allow " + u.Hostname()}
	}
	return b.exec(ctx, agent.Exec{Command: []string{"sh", "-c", fetchScript, "sh", u.String()}}, a.Timeout, nil)
}

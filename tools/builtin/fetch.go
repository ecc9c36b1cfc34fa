package builtin

import (
	"context"
	"encoding/base64"
	"errors"
	"fmt"
	"io"
	"math"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"
	"unicode/utf8"

	"clove.run/clove/tools"
)

// Bounds of fetch.
const (
	fetchTime  = 30 * time.Second
	body       = 4 << 20
	maxBody    = 16 << 20
	hops       = 3
	maxHops    = 5
	maxHeaders = 64 << 10 // bytes of an answer's
)

// FetchArguments are those of fetch.
type FetchArguments struct {
	URL       string            `json:"url"`
	Method    string            `json:"method"` // empty: GET
	Headers   map[string]string `json:"headers"`
	Bytes     int               `json:"max_bytes"`     // of the body; 0: 4 MiB
	Timeout   int               `json:"timeout_s"`     // 0: 30
	Redirects *int              `json:"max_redirects"` // nil: 3
	Raw       bool              `json:"raw"`           // HTML as it is
	Binary    bool              `json:"binary"`        // any type
}

// FetchResult is the result of fetch, in JSON.
type FetchResult struct {
	URL       string            `json:"url"` // of the last hop
	Status    int               `json:"status"`
	Headers   map[string]string `json:"headers"`
	Body      string            `json:"body"`
	Encoding  string            `json:"encoding"`   // of Body: text or base64
	Bytes     int               `json:"body_bytes"` // as received
	Truncated bool              `json:"truncated"`
	Redirects []string          `json:"redirects"`
	Duration  float64           `json:"duration_s"`
}

// shownHeaders are those of an answer that a result has.
var shownHeaders = []string{"Content-Type", "Content-Length", "Content-Language", "Last-Modified", "Etag", "Date", "Link", "Location", "Retry-After", "Www-Authenticate"}

// refusedHeaders are those of a request that belong to the connection.
var refusedHeaders = []string{"Host", "Connection", "Content-Length", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Proxy-Authorization", "Proxy-Connection", "Keep-Alive", "Expect", "Accept-Encoding"}

// Fetch gets a document.
func (b *Box) Fetch(ctx context.Context, a FetchArguments) (string, error) {
	limit := fetchTime
	if a.Timeout > 0 {
		limit = min(time.Duration(min(a.Timeout, math.MaxInt32))*time.Second, tools.MaxLookTime)
	}
	timed, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	request, err := a.request(timed)
	if err != nil {
		return "", err
	}
	r := FetchResult{Redirects: []string{}}
	began := time.Now()
	answer, err := a.client(&r).Do(request)
	if err == nil {
		defer answer.Body.Close()
		err = r.read(answer, a)
	}
	switch {
	case ctx.Err() != nil:
		return "", ctx.Err()
	case timed.Err() != nil:
		return "", fmt.Errorf("no whole answer within %s", limit)
	case err != nil:
		return "", err
	}
	r.Duration = math.Round(time.Since(began).Seconds()*1000) / 1000
	return b.encode(&r, r.shorten)
}

func (a FetchArguments) request(ctx context.Context) (*http.Request, error) {
	switch a.Method {
	case "", http.MethodGet, http.MethodHead:
	default:
		return nil, invalid("method: it must be GET or HEAD")
	}
	at, err := url.Parse(a.URL)
	if err != nil {
		return nil, invalid("url: it is none: %.200s", errors.Unwrap(err))
	}
	if err := checkHop(at); err != nil {
		return nil, &Invalid{fmt.Errorf("url: %w", err)}
	}
	request, err := http.NewRequestWithContext(ctx, a.Method, a.URL, nil)
	if err != nil {
		return nil, &Invalid{err}
	}
	request.Header.Set("User-Agent", "clove-tool")
	request.Header.Set("Accept", "text/html, text/*;q=0.9, application/json;q=0.9, application/xml;q=0.9, */*;q=0.1")
	for name, value := range a.Headers {
		for _, refused := range refusedHeaders {
			if http.CanonicalHeaderKey(name) == refused {
				return nil, invalid("headers: %s belongs to the connection", refused)
			}
		}
		request.Header.Set(name, value) // the client refuses what no header may have
	}
	return request, nil
}

// checkHop checks a URL before it is asked for: the first one, and each that a server names.
func checkHop(at *url.URL) error {
	switch {
	case at.Scheme != "http" && at.Scheme != "https":
		return fmt.Errorf("%.200q: only http and https are fetched", at.Redacted())
	case at.User != nil:
		return errors.New("it must have no user or password: give a header")
	case at.Hostname() == "":
		return errors.New("it has no host")
	}
	return nil
}

// client asks without cookies, and with the environment's proxies, if there are any.
func (a FetchArguments) client(r *FetchResult) *http.Client {
	most := hops
	if a.Redirects != nil {
		most = max(0, min(*a.Redirects, maxHops))
	}
	transport := &http.Transport{Proxy: http.ProxyFromEnvironment, DisableKeepAlives: true, ForceAttemptHTTP2: true, MaxResponseHeaderBytes: maxHeaders, TLSHandshakeTimeout: fetchTime}
	return &http.Client{Transport: transport, CheckRedirect: func(next *http.Request, _ []*http.Request) error {
		if len(r.Redirects) >= most {
			return http.ErrUseLastResponse
		}
		if err := checkHop(next.URL); err != nil {
			return fmt.Errorf("the server redirects: %w", err)
		}
		r.Redirects = append(r.Redirects, next.URL.String())
		return nil
	}}
}

// read takes an answer over.
func (r *FetchResult) read(answer *http.Response, a FetchArguments) error {
	r.URL, r.Status, r.Headers, r.Encoding = answer.Request.URL.String(), answer.StatusCode, map[string]string{}, "text"
	for _, name := range shownHeaders {
		if value := answer.Header.Get(name); value != "" {
			r.Headers[strings.ToLower(name)] = strings.ToValidUTF8(value[:min(len(value), 1024)], "\uFFFD")
		}
	}
	if answer.Request.Method == http.MethodHead {
		return nil
	}
	kind, _, err := mime.ParseMediaType(answer.Header.Get("Content-Type"))
	if err != nil {
		kind = ""
	}
	if !isText(kind) && !a.Binary && answer.ContentLength != 0 {
		return fmt.Errorf("status %d with the content type %.100q, which is no text, JSON or XML: give binary to get it", r.Status, answer.Header.Get("Content-Type"))
	}
	most := or(a.Bytes, body, maxBody)
	content, err := io.ReadAll(io.LimitReader(answer.Body, int64(most)+1))
	if err != nil && !errors.Is(err, io.ErrUnexpectedEOF) {
		return err
	}
	r.Truncated = len(content) > most || err != nil
	content = content[:min(len(content), most)]
	r.Bytes = len(content)
	switch {
	case !isText(kind) && !utf8.Valid(content):
		r.Body, r.Encoding = base64.StdEncoding.EncodeToString(content), "base64"
	case (kind == "text/html" || kind == "application/xhtml+xml") && !a.Raw:
		r.Body = readable(content)
	default:
		r.Body = strings.ToValidUTF8(string(content), "\uFFFD")
	}
	return nil
}

func isText(kind string) bool {
	return strings.HasPrefix(kind, "text/") || kind == "application/json" || kind == "application/xml" || strings.HasSuffix(kind, "+json") || strings.HasSuffix(kind, "+xml") || kind == "application/x-ndjson"
}

// shorten leaves the end of the body out.
func (r *FetchResult) shorten(excess int) bool {
	if r.Body == "" {
		return false
	}
	left := min(len(r.Body)*7/8, max(len(r.Body)-excess, len(r.Body)/8)) // JSON may be longer than the text
	if r.Encoding == "base64" {
		left -= left % 4
	}
	r.Body, r.Truncated = strings.ToValidUTF8(r.Body[:left], ""), true
	return true
}

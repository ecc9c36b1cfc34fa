// Package tracetest is a collector of traces for tests: OTLP over HTTP on
// loopback, as the exporter sees a real one.
//
// It refuses what is no batch of spans, which fails the test.
package tracetest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"sync"
	"testing"

	collector "go.opentelemetry.io/proto/otlp/collector/trace/v1"
	trace "go.opentelemetry.io/proto/otlp/trace/v1"
	"google.golang.org/protobuf/proto"
)

// Collector keeps what it is sent.
type Collector struct {
	URL string

	mu      sync.Mutex // guards the following
	spans   []*trace.Span
	raw     []byte
	service string
	more    chan struct{} // closed and replaced with each batch
}

// New serves a collector until the test ends.
func New(t *testing.T) *Collector {
	t.Helper()
	c := &Collector{more: make(chan struct{})}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return // the sender was killed meanwhile
		}
		var batch collector.ExportTraceServiceRequest
		if err := proto.Unmarshal(body, &batch); err != nil || r.Method != http.MethodPost || r.URL.Path != "/v1/traces" {
			t.Errorf("%s %s: %v", r.Method, r.URL, err)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		c.take(&batch, body)
	}))
	t.Cleanup(server.Close)
	c.URL = server.URL
	return c
}

// take keeps a batch: the spans, and every byte, in which tests look for secrets.
func (c *Collector) take(batch *collector.ExportTraceServiceRequest, body []byte) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.raw = append(c.raw, body...)
	for _, resource := range batch.ResourceSpans {
		for _, a := range resource.Resource.Attributes {
			if a.Key == "service.name" {
				c.service = a.Value.GetStringValue()
			}
		}
		for _, scope := range resource.ScopeSpans {
			c.spans = append(c.spans, scope.Spans...)
		}
	}
	close(c.more)
	c.more = make(chan struct{})
}

// Now returns the spans that came so far, and a channel that is closed when more come.
func (c *Collector) Now() ([]*trace.Span, <-chan struct{}) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.spans), c.more
}

// Raw returns every byte that came, and the service that it came from.
func (c *Collector) Raw() (body []byte, service string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	return slices.Clone(c.raw), c.service
}

// Find returns the first span with a name; nil: none.
func Find(spans []*trace.Span, name string) *trace.Span {
	for _, s := range spans {
		if s.Name == name {
			return s
		}
	}
	return nil
}

// Text returns an attribute as text; numbers count as absent.
func Text(s *trace.Span, key string) string {
	for _, a := range s.Attributes {
		if a.Key == key {
			return a.Value.GetStringValue()
		}
	}
	return ""
}

package inner

import (
	"context"
	"net/http"
	"slices"

	"clove.run/clove/egress/swap/link"
)

// named is a request as records name it.
func named(host string, h *link.Head) link.Request {
	return link.Request{Host: host, Method: h.Method, Path: h.Path[:min(len(h.Path), link.PathMost)]}
}

// ask has clove decide about each secret that a request carries, one after the other.
func (s *Server) ask(ctx context.Context, used []*secret, request link.Request) *refusal {
	for _, one := range used {
		if v := s.decide(ctx, one.Name, request); v.Busy {
			return &refusal{http.StatusServiceUnavailable, link.ReasonUse, "the secret " + one.Name + " cannot be used now: " + v.Reason}
		} else if v.Reason != "" {
			return &refusal{http.StatusForbidden, link.ReasonUse, "the secret " + one.Name + " may not be used: " + v.Reason}
		}
	}
	return nil
}

func (s *Server) decide(ctx context.Context, name string, request link.Request) link.Verdict {
	answer := make(chan link.Verdict, 1)
	s.mu.Lock()
	s.lastUse++
	use := link.Use{Number: s.lastUse, Secret: name, Request: request}
	s.uses[use.Number] = answer
	s.mu.Unlock()
	err := s.control.Send(link.Report{Use: &use})
	if err == nil {
		select {
		case v := <-answer:
			return v
		case <-ctx.Done():
		}
	}
	s.mu.Lock()
	delete(s.uses, use.Number)
	s.mu.Unlock()
	return link.Verdict{Reason: "clove does not answer", Busy: true}
}

// keep uses values from now on, and returns the public keys of those that sign.
func (s *Server) keep(values link.Values) (map[string][]byte, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	public, err := s.learnKeys(values)
	if err != nil {
		return nil, err
	}
	for name, value := range values {
		if public[name] != nil {
			continue // it is in no request, and so in no answer
		}
		s.keyless = s.keyless.With(value)
		s.longest = max(s.longest, len(value))
	}
	s.values = values
	return public, nil
}

// value returns what reads the values of secrets, and whether all of them are there.
func (s *Server) value(used []*secret) (get func(*secret) string, all bool) {
	s.mu.Lock()
	values := s.values
	s.mu.Unlock()
	missing := slices.ContainsFunc(used, func(one *secret) bool { return values[one.Name] == "" })
	return func(one *secret) string { return values[one.Name] }, !missing
}

// report has clove record what was refused, or left as it was.
func (s *Server) report(request link.Request, all ...link.Denied) {
	for _, d := range all {
		d.Request = request
		_ = s.control.Send(link.Report{Denied: &d})
	}
}

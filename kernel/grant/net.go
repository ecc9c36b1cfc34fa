package grant

import (
	"errors"
	"net/netip"
	"slices"
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/egress"
)

// parseNet accepts what --allow accepts, and has its errors: the rule is compiled once.
func parseNet(s *Scope, pattern string) (string, *refusal) {
	target, err := egress.ParseTarget(pattern)
	if err == nil {
		err = allowable(pattern, nil, false)
	}
	if err != nil {
		return "", refusalOf(err)
	}
	s.target = target
	return target.String(), nil
}

// allowable compiles an allow rule for the target. With user set it is one of a user other
// than root: it must name neither metadata services nor an address that isHost reports.
func allowable(target string, isHost func(netip.Addr) bool, user bool) error {
	_, err := egress.New(egress.Config{Rules: []agent.EgressRule{{Target: target}}, IsHost: isHost, User: user})
	return err
}

func refusalOf(err error) *refusal {
	var known *agent.Error
	if errors.As(err, &known) {
		return &refusal{known.Message, known.Hint}
	}
	return &refusal{reason: err.Error()}
}

func netCovers(wide, narrow Scope) bool {
	covers, err := egress.Ceiling{wide.target}.Covers(narrow.pattern)
	return err == nil && covers
}

// groupWords mean many addresses, see egress.ParseTarget.
var groupWords = []egress.Class{egress.ClassPublic, egress.ClassPrivate, egress.ClassMetadata, egress.ClassHost}

// oneEndpoint reports whether a canonical target is one name or address, with one port or
// without a port.
func oneEndpoint(s Scope) bool {
	place := s.pattern
	if _, after, found := strings.Cut(place, "://"); found {
		place = after
	}
	port := ""
	if cut := strings.LastIndexByte(place, ':'); cut > strings.LastIndexByte(place, ']') {
		place, port = place[:cut], place[cut+1:]
	}
	return !strings.ContainsAny(place, "*/") && !strings.ContainsAny(port, "*-") && !slices.Contains(groupWords, egress.Class(place))
}

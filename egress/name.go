package egress

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"clove.run/clove/agent"
)

// Name is a host name in canonical form: lower case, A-labels, no final dot. Only ParseName
// makes one.
type Name string

// Bounds of RFC 1035 section 2.3.4, for a name without its final dot.
const (
	maxNameBytes  = 253
	maxLabelBytes = 63
)

// maxWrittenBytes bounds the text that is parsed. A name of 253 bytes can be longer when
// written in Unicode.
const maxWrittenBytes = 1024

// profile is UTS 46 for look-up, non-transitional. STD3 rules are off because they refuse
// `_`, and the hyphen check is off because names with "--" exist. checkLabel checks both
// instead.
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(),
	idna.CheckHyphens(false), idna.StrictDomainName(false))

// ParseName returns the canonical form of a name, or the reason why it is not one. A text
// that some program would parse as an address (127.1, 0x7f000001, 2130706433) is never a
// name.
func ParseName(text string) (Name, error) {
	name, err := canonicalName(text)
	if err != nil {
		return "", &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("%s is no host name: %s", quote(text), err), Hint: err.hint}
	}
	return name, nil
}

// IsLocalhost reports whether the name is localhost or below it. RFC 6761 section 6.3
// forbids sending such names to a name server.
func (n Name) IsLocalhost() bool {
	return n == "localhost" || strings.HasSuffix(string(n), ".localhost")
}

// refusal says why a text is not a name or target. Its reason completes a sentence about the text.
type refusal struct{ reason, hint string }

func (r *refusal) Error() string { return r.reason }

func refuse(format string, args ...any) *refusal {
	return &refusal{reason: fmt.Sprintf(format, args...)}
}

// canonicalName is ParseName for callers that add to the error. The characters are checked
// before IDNA, which maps some of them to others, and the labels after it, because it may
// create new ones.
func canonicalName(text string) (Name, *refusal) {
	if err := checkCharacters(text); err != nil {
		return "", err
	}
	name := strings.TrimSuffix(text, ".")
	if name == "" {
		return "", refuse("it is empty")
	}
	name, err := lookupForm(name)
	if err != nil {
		return "", err
	}
	if len(name) > maxNameBytes {
		return "", refuse("it has %d bytes, a name has at most %d", len(name), maxNameBytes)
	}
	last := ""
	for label := range strings.SplitSeq(name, ".") {
		if err := checkLabel(label); err != nil {
			return "", err
		}
		last = label
	}
	if isNumber(last) {
		return "", addressLike(name)
	}
	return Name(name), nil
}

// checkCharacters refuses each character that some parser of host names takes for the end
// of the name or for a dot, with a reason for each.
func checkCharacters(text string) *refusal {
	if len(text) > maxWrittenBytes {
		return refuse("it has %d bytes", len(text))
	}
	if !utf8.ValidString(text) {
		return refuse("it is not UTF-8")
	}
	for _, r := range text {
		switch {
		case r < ' ' || r == 0x7f:
			return refuse("it holds the control character %#02x", r)
		case r == '%':
			return refuse("it holds %%: neither escapes nor zones belong in a name")
		case r == '@':
			return refuse("it holds @: user names do not belong in it")
		case strings.ContainsRune(` /\:?#[]*`, r):
			return refuse("it holds %q", r)
		case r == '\u3002' || r == '\uff0e' || r == '\uff61':
			return refuse("it holds %+q, a dot that is not a dot", r)
		}
	}
	return nil
}

// lookupForm lowers ASCII itself and leaves the rest to IDNA, which also refuses A-labels
// that do not match their Unicode form.
func lookupForm(name string) (string, *refusal) {
	lower, simple := lowerASCII(name)
	if simple {
		return lower, nil
	}
	ascii, err := profile.ToASCII(lower)
	if err != nil {
		return "", refuse("IDNA refuses it (%s)", err)
	}
	return ascii, nil
}

// lowerASCII reports whether the lower-cased name needs no IDNA processing.
func lowerASCII(name string) (lower string, simple bool) {
	lower = strings.ToLower(name)
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return name, false // IDNA lowers other letters
		}
	}
	return lower, !strings.HasPrefix(lower, "xn--") && !strings.Contains(lower, ".xn--")
}

// checkLabel allows `_`, which service names (RFC 2782) and some hosts have, and "--"
// anywhere. Host names have no hyphen at the start or end of a label (RFC 952).
func checkLabel(label string) *refusal {
	switch {
	case label == "":
		return refuse("it has an empty label")
	case len(label) > maxLabelBytes:
		return refuse("a label has %d bytes, at most %d are allowed", len(label), maxLabelBytes)
	case label[0] == '-' || label[len(label)-1] == '-':
		return refuse("the label %q begins or ends with a hyphen", label)
	}
	for i := range len(label) {
		c := label[i]
		if (c < 'a' || c > 'z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return refuse("it holds %q", rune(c))
		}
	}
	return nil
}

// isNumber implements "ends in a number" of the URL standard: inet_aton(3) could take such
// a last label for a part of an address.
func isNumber(label string) bool {
	digits, set := label, "0123456789"
	if strings.HasPrefix(label, "0x") {
		digits, set = label[2:], "0123456789abcdef"
	}
	return strings.Trim(digits, set) == ""
}

// addressLike distinguishes an address, which a target has another syntax for, from a text
// that only some parsers take for an address.
func addressLike(name string) *refusal {
	if _, err := netip.ParseAddr(name); err == nil {
		return refuse("it is an address")
	}
	r := refuse("its last label is a number, so that some programs read it as an address")
	r.hint = "write an IPv4 address as four decimal numbers, for example 192.0.2.1"
	return r
}

// quote shows untrusted text escaped and shortened.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		return fmt.Sprintf("%+q…", text[:most])
	}
	return fmt.Sprintf("%+q", text)
}

package egress

import (
	"fmt"
	"net/netip"
	"strings"
	"unicode/utf8"

	"golang.org/x/net/idna"

	"clove.run/clove/agent"
)

// Name is a host name in its one canonical form: lower case, A-labels, no dot
// at the end. Only ParseName makes one.
type Name string

// RFC 1035 section 2.3.4; the name without its last dot.
const (
	maxNameBytes  = 253
	maxLabelBytes = 63
)

// maxWrittenBytes bounds what is looked at: a name of 253 bytes can be written
// with a few more in Unicode.
const maxWrittenBytes = 1024

// profile is UTS 46 for look-up, not transitional. STD3 rules are off because
// they refuse `_`; what ASCII may stand in a name, checkLabel decides. Hyphens
// are checked there too: names with "--" in them exist.
var profile = idna.New(idna.MapForLookup(), idna.Transitional(false), idna.BidiRule(),
	idna.CheckHyphens(false), idna.StrictDomainName(false))

// ParseName makes a name canonical, or says why it is none. What could be read
// as an address by anybody (127.1, 0x7f000001, 2130706433) is never a name.
func ParseName(text string) (Name, error) {
	name, err := canonicalName(text)
	if err != nil {
		return "", &agent.Error{Kind: agent.KindInvalid, Message: fmt.Sprintf("%s is no host name: %s", quote(text), err), Hint: err.hint}
	}
	return name, nil
}

// IsLocalhost says whether the name is localhost or lies below it, which RFC
// 6761 section 6.3 keeps away from every name server.
func (n Name) IsLocalhost() bool {
	return n == "localhost" || strings.HasSuffix(string(n), ".localhost")
}

// refusal is why a text is no name or target, in words that go on after it.
type refusal struct{ reason, hint string }

func (r *refusal) Error() string { return r.reason }

func refuse(format string, args ...any) *refusal {
	return &refusal{reason: fmt.Sprintf(format, args...)}
}

// canonicalName is ParseName for callers that say more about the text.
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

// checkCharacters refuses, with a word of its own, each character that some
// parser of host names takes for the end of the name or for a dot.
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

// lookupForm lowers ASCII by itself and leaves the rest to IDNA, which also
// refuses A-labels that their Unicode form would not give.
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

// lowerASCII says whether lowering was all there was to do.
func lowerASCII(name string) (lower string, simple bool) {
	lower = strings.ToLower(name)
	for i := range len(name) {
		if name[i] >= utf8.RuneSelf {
			return name, false // IDNA knows the case of the rest
		}
	}
	return lower, !strings.HasPrefix(lower, "xn--") && !strings.Contains(lower, ".xn--")
}

// checkLabel allows `_`, which service names (RFC 2782) and some hosts have, and
// "--" in any place; hyphens at the ends are in no host name (RFC 952).
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

// isNumber follows the URL standard's "ends in a number": a last label that
// inet_aton(3) could take for a part of an address.
func isNumber(label string) bool {
	digits, set := label, "0123456789"
	if strings.HasPrefix(label, "0x") {
		digits, set = label[2:], "0123456789abcdef"
	}
	return strings.Trim(digits, set) == ""
}

// addressLike tells a plain address, which has its own place in a target, from
// what only some parsers take for one.
func addressLike(name string) *refusal {
	if _, err := netip.ParseAddr(name); err == nil {
		return refuse("it is an address")
	}
	r := refuse("its last label is a number, so that some programs read it as an address")
	r.hint = "write an IPv4 address as four decimal numbers, for example 192.0.2.1"
	return r
}

// quote shows untrusted text, escaped and cut.
func quote(text string) string {
	const most = 80
	if len(text) > most {
		return fmt.Sprintf("%+q…", text[:most])
	}
	return fmt.Sprintf("%+q", text)
}

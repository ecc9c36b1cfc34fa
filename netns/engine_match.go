package netns

import (
	"encoding/binary"
	"fmt"

	"github.com/google/nftables/expr"
)

// match has the conditions that only rules in an engine's namespace use. A zero field is no
// condition.
type match struct {
	in, out   string // interface: "lo", the only one that a rule names
	otherIn   bool   // any interface but in
	mark      uint32
	otherMark bool   // any mark but mark
	fresh     bool   // the first packet of its connection
	receiver  uint32 // mark of the socket that will receive the packet
	replies   bool   // a reply packet of a connection that was opened from outside
	icmp      byte   // ICMPv6 message type
}

// Actions in an engine's namespace; each of them also accepts.
const (
	divert   action = "divert"   // leads the packet to the gate
	remember action = "remember" // marks the connection as opened from outside
	untrack  action = "untrack"
)

// words is the match in the syntax of nft(8).
func (m match) words() []string {
	var words []string
	if m.in != "" {
		words = append(words, "iif "+not(m.otherIn)+m.in)
	}
	if m.out != "" {
		words = append(words, "oif "+m.out)
	}
	if m.mark != 0 {
		words = append(words, fmt.Sprintf("meta mark %s%#x", not(m.otherMark), m.mark))
	}
	if m.fresh {
		words = append(words, "ct state new")
	}
	if m.receiver != 0 {
		words = append(words, fmt.Sprintf("socket mark %#x", m.receiver))
	}
	if m.replies {
		words = append(words, "ct direction reply", fmt.Sprintf("ct mark %#x", inbound))
	}
	if m.icmp != 0 {
		words = append(words, fmt.Sprintf("icmpv6 type %d", m.icmp))
	}
	return words
}

func not(other bool) string {
	if other {
		return "!= "
	}
	return ""
}

// expressions is the match as instructions, in the order of words. Each compares register 1
// and ends the rule if it does not match.
func (m match) expressions() []expr.Any {
	var all []expr.Any
	if m.in != "" {
		all = append(all, &expr.Meta{Key: expr.MetaKeyIIF, Register: 1}, compare(m.otherIn, native(loopbackIndex)))
	}
	if m.out != "" {
		all = append(all, &expr.Meta{Key: expr.MetaKeyOIF, Register: 1}, compare(false, native(loopbackIndex)))
	}
	if m.mark != 0 {
		all = append(all, &expr.Meta{Key: expr.MetaKeyMARK, Register: 1}, compare(m.otherMark, native(m.mark)))
	}
	if m.fresh {
		all = append(all, &expr.Ct{Key: expr.CtKeySTATE, Register: 1},
			// The state is a set of bits, so the bit is masked and compared with 0.
			&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: native(expr.CtStateBitNEW), Xor: native(0)},
			compare(true, native(0)))
	}
	if m.receiver != 0 {
		all = append(all, &expr.Socket{Key: expr.SocketKeyMark, Register: 1}, compare(false, native(m.receiver)))
	}
	if m.replies {
		const reply = 1 // IP_CT_DIR_REPLY of nf_conntrack_tuple_common.h
		all = append(all, &expr.Ct{Key: expr.CtKeyDIRECTION, Register: 1}, compare(false, []byte{reply}),
			&expr.Ct{Key: expr.CtKeyMARK, Register: 1}, compare(false, native(inbound)))
	}
	return append(all, m.icmpExpressions()...)
}

// icmpExpressions check the protocol first, because the type is the first byte of an ICMPv6
// header only.
func (m match) icmpExpressions() []expr.Any {
	if m.icmp == 0 {
		return nil
	}
	const icmpv6 = 58
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal([]byte{icmpv6}),
		&expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 0, Len: 1}, equal([]byte{m.icmp})}
}

// words is the action in the syntax of nft(8).
func (v action) words() string {
	switch v {
	case divert:
		return fmt.Sprintf("meta mark set %#x accept", markDivert)
	case remember:
		return fmt.Sprintf("ct mark set %#x accept", inbound)
	case untrack:
		return "notrack accept"
	}
	return string(v)
}

// statement is the part of the action before the accept.
func (v action) statement() []expr.Any {
	switch v {
	case divert:
		return []expr.Any{&expr.Immediate{Register: 1, Data: native(markDivert)},
			&expr.Meta{Key: expr.MetaKeyMARK, SourceRegister: true, Register: 1}}
	case remember:
		return []expr.Any{&expr.Immediate{Register: 1, Data: native(inbound)},
			&expr.Ct{Key: expr.CtKeyMARK, SourceRegister: true, Register: 1}}
	}
	return []expr.Any{&expr.Notrack{}}
}

func compare(other bool, data []byte) expr.Any {
	if other {
		return &expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: data}
	}
	return equal(data)
}

// native encodes in host byte order, in which nf_tables keeps marks and interface numbers
// in its registers.
func native(value uint32) []byte { return binary.NativeEndian.AppendUint32(nil, value) }

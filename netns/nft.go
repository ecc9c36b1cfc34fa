package netns

import (
	"encoding/binary"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"slices"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// hooks and priorities translate to the library's constants.
var (
	hooks = map[hook]*nftables.ChainHook{
		prerouting:  nftables.ChainHookPrerouting,
		input:       nftables.ChainHookInput,
		output:      nftables.ChainHookOutput,
		postrouting: nftables.ChainHookPostrouting,
	}
	priorities = map[string]*nftables.ChainPriority{
		"raw":    nftables.ChainPriorityRaw,
		"mangle": nftables.ChainPriorityMangle,
		"filter": nftables.ChainPriorityFilter,
	}
)

// setRules replaces the content of clove's table by chains in one transaction, so there is
// no moment without rules. With first it fails with ErrRuled if the table exists: the
// kernel decides between two that run at once. It runs on a thread inside the namespace.
func setRules(chains []chain, first bool) error {
	if chains == nil {
		return nil
	}
	connection, err := nftables.New()
	if err != nil {
		return fmt.Errorf("cannot speak to nftables: %w", err)
	}
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName}
	// List first: a kernel without nf_tables answers only the first message of a
	// batch, and the library would wait for the other answers for ever.
	present, err := connection.ListTablesOfFamily(table.Family)
	if err != nil {
		// nfnetlink answers EINVAL to a request for a subsystem that is not there.
		return fmt.Errorf("cannot list nft tables: %w", lacking(err, "CONFIG_NF_TABLES", unix.EINVAL))
	}
	if first {
		err = fill(connection, connection.CreateTable(table), chains)
	} else {
		err = replace(connection, table, chains, len(present) > 0)
	}
	if first && errors.Is(err, unix.EEXIST) {
		return ErrRuled
	}
	if err != nil && len(present) == 0 {
		err = diagnose(connection, chains, err) // never where rules are in force, because diagnose adds and removes rules
	}
	if err != nil {
		return fmt.Errorf("cannot set nft rules: %w", err)
	}
	return nil
}

// replace deletes the table only if it exists: a deletion takes the kernel 10 ms.
func replace(connection *nftables.Conn, table *nftables.Table, chains []chain, present bool) error {
	connection.AddTable(table)
	if present {
		connection.DelTable(table)
		connection.AddTable(table)
	}
	return fill(connection, table, chains)
}

// fill adds the chains and commits the batch. The default policy is drop: a packet that no
// rule handles must not pass.
func fill(connection *nftables.Conn, table *nftables.Table, chains []chain) error {
	for _, c := range chains {
		if c.hook == "" {
			connection.AddChain(&nftables.Chain{Name: c.called(), Table: table})
			continue
		}
		kind, policy := nftables.ChainTypeFilter, nftables.ChainPolicyDrop
		if c.route {
			kind = nftables.ChainTypeRoute
		}
		if c.open {
			policy = nftables.ChainPolicyAccept
		}
		added := connection.AddChain(&nftables.Chain{
			Name: c.called(), Table: table, Type: kind,
			Hooknum: hooks[c.hook], Priority: priorities[c.priority], Policy: &policy,
		})
		for _, r := range c.rules {
			connection.AddRule(&nftables.Rule{Table: table, Chain: added, Exprs: r.expressions()})
		}
	}
	return connection.Flush()
}

// features are parts of nf_tables that a kernel may lack, each with a rule that needs it.
var features = []struct {
	option string
	engine bool // only an engine's namespace needs it
	rule   rule
}{
	{"CONFIG_NF_TABLES_INET", false, rule{action: accept}},
	{"CONFIG_NFT_TPROXY", false, rule{version: 4, protocol: unix.IPPROTO_TCP, action: tproxy, socket: netip.AddrPortFrom(gate4, gatePort)}},
	{"CONFIG_NFT_TPROXY with CONFIG_NF_TABLES_IPV6", false, rule{version: 6, protocol: unix.IPPROTO_TCP, action: tproxy, socket: netip.AddrPortFrom(gate6, gatePort)}},
	{"CONFIG_NFT_REJECT_INET", false, rule{protocol: unix.IPPROTO_TCP, action: resetTCP}},
	{"CONFIG_NFT_CT", true, rule{match: match{fresh: true}, action: accept}},
	{"CONFIG_NFT_SOCKET", true, rule{match: match{receiver: markGate}, action: accept}},
}

// diagnose finds the missing feature after the kernel has rejected the rule set as a whole.
// It uses a table of its own name, because another owner may have made clove's table
// meanwhile.
func diagnose(connection *nftables.Conn, chains []chain, whole error) error {
	table := &nftables.Table{Family: nftables.TableFamilyINet, Name: tableName + "-probe"}
	defer func() {
		connection.AddTable(table)
		connection.DelTable(table)
		_ = connection.Flush() // the table has no traffic and is empty after a failure
	}()
	engine := slices.ContainsFunc(chains, func(c chain) bool { return c.hook == input })
	for _, f := range features {
		if f.engine && !engine {
			continue
		}
		err := replace(connection, table, []chain{{hook: prerouting, priority: "mangle", rules: []rule{f.rule}}}, true)
		if err != nil {
			return lacking(err, f.option)
		}
	}
	return whole
}

// lacking adds the name of the kernel option to an errno that means "not supported".
func lacking(err error, option string, others ...unix.Errno) error {
	for _, errno := range append(others, unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT) {
		if errors.Is(err, errno) {
			return fmt.Errorf("this kernel lacks the kernel option %s, or may not load its module: %w", option, err)
		}
	}
	return err
}

// expressions is the rule as instructions for the kernel's nf_tables machine.
func (r rule) expressions() []expr.Any {
	all := r.match.expressions()
	if r.version != 0 {
		all = append(all, versionIs(r.version)...)
	}
	if r.from.IsValid() {
		all = append(all, addressIn(r.from, source)...)
	}
	if r.to.IsValid() {
		all = append(all, addressIn(r.to, destination)...)
	}
	if r.protocol != 0 {
		all = append(all, &expr.Meta{Key: expr.MetaKeyL4PROTO, Register: 1}, equal([]byte{byte(r.protocol)}))
	}
	if r.port != 0 {
		// The destination port has the same offset in UDP and TCP, RFC 768 and RFC 9293.
		all = append(all, &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseTransportHeader, Offset: 2, Len: 2},
			equal(binary.BigEndian.AppendUint16(nil, r.port)))
	}
	return append(all, r.end()...)
}

// end is the rule's action. tproxy alone does not accept: without the accept, later rules
// would still see the packet.
func (r rule) end() []expr.Any {
	switch r.action {
	case tproxy:
		return []expr.Any{
			&expr.Immediate{Register: 1, Data: r.socket.Addr().AsSlice()},
			&expr.Immediate{Register: 2, Data: binary.BigEndian.AppendUint16(nil, r.socket.Port())},
			&expr.TProxy{Family: byte(nfproto(r.version)), RegAddr: 1, RegPort: 2},
			&expr.Verdict{Kind: expr.VerdictAccept},
		}
	case resetTCP:
		return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_TCP_RST}}
	case unreachable:
		return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_PORT_UNREACH}}
	case prohibited:
		return []expr.Any{&expr.Reject{Type: unix.NFT_REJECT_ICMPX_UNREACH, Code: unix.NFT_REJECT_ICMPX_ADMIN_PROHIBITED}}
	case accept:
		return []expr.Any{&expr.Verdict{Kind: expr.VerdictAccept}}
	case divert, remember, untrack:
		return append(r.action.statement(), &expr.Verdict{Kind: expr.VerdictAccept})
	}
	return []expr.Any{&expr.Verdict{Kind: expr.VerdictDrop}}
}

func nfproto(version int) int {
	if version == 6 {
		return unix.NFPROTO_IPV6
	}
	return unix.NFPROTO_IPV4
}

// versionIs compares the IP version, which rules of the inet family must do before they
// read an address.
func versionIs(version int) []expr.Any {
	return []expr.Any{&expr.Meta{Key: expr.MetaKeyNFPROTO, Register: 1}, equal([]byte{byte(nfproto(version))})}
}

// side is the offset of an address in the IPv4 and the IPv6 header, RFC 791 and RFC 8200.
type side struct{ offset4, offset6 uint32 }

var (
	source      = side{12, 8}
	destination = side{16, 24}
)

// addressIn compares only the bytes that the prefix covers, as nft(8) does; a mask is
// needed where it ends within a byte.
func addressIn(p netip.Prefix, s side) []expr.Any {
	version, offset := 4, s.offset4
	if p.Addr().Is6() {
		version, offset = 6, s.offset6
	}
	length := p.Addr().BitLen() / 8
	if p.Bits()%8 == 0 {
		length = p.Bits() / 8 // only the bytes that the prefix speaks of
	}
	all := append(versionIs(version), &expr.Payload{DestRegister: 1, Base: expr.PayloadBaseNetworkHeader, Offset: offset, Len: uint32(length)})
	if p.Bits()%8 != 0 {
		mask := net.CIDRMask(p.Bits(), p.Addr().BitLen())
		all = append(all, &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: uint32(length), Mask: mask, Xor: make([]byte, length)})
	}
	return append(all, equal(p.Masked().Addr().AsSlice()[:length]))
}

// equal ends the rule unless register 1 holds data.
func equal(data []byte) expr.Any {
	return &expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: data}
}

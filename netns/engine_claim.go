package netns

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrRuled says that another's rules hold in a namespace already.
var ErrRuled = errors.New("rules of clove's hold there already")

// claims are chains without a hook and without rules: that they are there tells
// whose the table is, and what for, in the same transaction that makes the rules.
func (p Plan) claims() []chain {
	return []chain{{name: claimOf(p.owner)}, {name: claimFor(p.policy)}}
}

func claimOf(owner string) string { return "of-" + owner }

func claimFor(policy string) string { return "for-" + policy }

// applyToEngine runs on a thread inside. After an error other than ErrRuled the
// namespace has no way out that was not there.
func (p Plan) applyToEngine() error {
	owned, err := claimed(claimOf(p.owner))
	if err != nil {
		return err
	}
	if err := raiseLoopback(); err != nil {
		return err
	}
	if !owned {
		if err := setRules(p.chains(), true); err != nil {
			return err
		}
	}
	for _, r := range p.policyRoutes() {
		// First the rule: a kernel that has one table only refuses it, and would put the
		// route into that one.
		if err := netlink.RuleAdd(r.rule()); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("cannot add rule %s: %w", r, lacking(err, r.option()))
		}
		if err := netlink.RouteReplace(r.route()); err != nil {
			return fmt.Errorf("cannot add route %s: %w", r, err)
		}
	}
	return nil
}

// Ruled tells whether a Plan was applied to n, by whomever.
func (n *Namespace) Ruled() (ruled bool, err error) {
	err = n.do(func() error { ruled, err = tablePresent(); return err })
	return ruled, err
}

// Serves tells whether the Plan that was applied to n was made for policy.
func (n *Namespace) Serves(policy string) (serves bool, err error) {
	err = n.do(func() error { serves, err = claimed(claimFor(policy)); return err })
	return serves, err
}

func tablePresent() (bool, error) {
	connection, err := nftables.New()
	if err != nil {
		return false, fmt.Errorf("cannot speak to nftables: %w", err)
	}
	tables, err := connection.ListTablesOfFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, fmt.Errorf("cannot list nft tables: %w", lacking(err, "CONFIG_NF_TABLES", unix.EINVAL))
	}
	for _, t := range tables {
		if t.Name == tableName {
			return true, nil
		}
	}
	return false, nil
}

// claimed tells whether a chain of claims is there.
func claimed(name string) (bool, error) {
	// First, for what it says of a kernel without nf_tables.
	if ruled, err := tablePresent(); err != nil || !ruled {
		return false, err
	}
	connection, err := nftables.New()
	if err != nil {
		return false, fmt.Errorf("cannot speak to nftables: %w", err)
	}
	chains, err := connection.ListChainsOfTableFamily(nftables.TableFamilyINet)
	if err != nil {
		return false, fmt.Errorf("cannot list nft chains: %w", err)
	}
	for _, c := range chains {
		if c.Table.Name == tableName && c.Name == name {
			return true, nil
		}
	}
	return false, nil
}

// Clear takes what owner's EnginePlan brought away again, and nobody else's. What
// is not there is no error.
func (n *Namespace) Clear(owner string) error {
	return n.do(func() error {
		owned, err := claimed(claimOf(owner))
		if err != nil || !owned {
			return err
		}
		if err := removeRoutes(); err != nil {
			return err
		}
		// Last, so that a Clear that failed is one that is done again.
		connection, err := nftables.New()
		if err != nil {
			return fmt.Errorf("cannot speak to nftables: %w", err)
		}
		connection.DelTable(&nftables.Table{Family: nftables.TableFamilyINet, Name: tableName})
		if err := connection.Flush(); err != nil {
			return fmt.Errorf("cannot remove nft rules: %w", err)
		}
		return nil
	})
}

func removeRoutes() error {
	for _, r := range (Plan{engine: true, everything: true, ipv6: true}).policyRoutes() {
		for _, err := range []error{netlink.RuleDel(r.rule()), netlink.RouteDel(r.route())} {
			if err != nil && !absent(err) {
				return fmt.Errorf("cannot remove %s: %w", r, err)
			}
		}
	}
	return nil
}

// absent tells whether what should be removed is not there: no such rule, no such
// route, or, by two words of the kernel's, no IPv6 at all.
func absent(err error) bool {
	for _, none := range []unix.Errno{unix.ENOENT, unix.ESRCH, unix.EAFNOSUPPORT, unix.EOPNOTSUPP} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}

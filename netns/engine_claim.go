package netns

import (
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"
)

// ErrRuled means that rules of another owner are in force in the namespace.
var ErrRuled = errors.New("rules of clove's hold there already")

// claims are empty chains without a hook. Their names store the owner and the policy of the
// table, and the transaction that makes the rules makes them too, so rules without an owner
// never exist.
func (p Plan) claims() []chain {
	return []chain{{name: claimOf(p.owner)}, {name: claimFor(p.policy)}}
}

func claimOf(owner string) string { return "of-" + owner }

func claimFor(policy string) string { return "for-" + policy }

// applyToEngine runs on a thread inside the namespace. After an error other than ErrRuled
// the container has at most the network that it had before, never one that passes the
// rules.
func (p Plan) applyToEngine() error {
	owned, err := claimed(claimOf(p.owner))
	if err != nil {
		return err
	}
	// Diverted packets come in through it, and an engine may have left it down.
	if err := raiseLoopback(); err != nil {
		return err
	}
	// An owner's own rules are left: a guard that is started again only completes the
	// routes.
	if !owned {
		if err := setRules(p.chains(), true); err != nil {
			return err
		}
	}
	for _, r := range p.policyRoutes() {
		// The rule comes first. A kernel without policy routing refuses it, but would accept
		// the route and put it into the main table.
		if err := netlink.RuleAdd(r.rule()); err != nil && !errors.Is(err, unix.EEXIST) {
			return fmt.Errorf("cannot add rule %s: %w", r, lacking(err, r.option()))
		}
		if err := netlink.RouteReplace(r.route()); err != nil {
			return fmt.Errorf("cannot add route %s: %w", r, err)
		}
	}
	return nil
}

// Ruled reports whether any owner's Plan is in force in n.
func (n *Namespace) Ruled() (ruled bool, err error) {
	err = n.do(func() error { ruled, err = tablePresent(); return err })
	return ruled, err
}

// Serves reports whether the Plan in force in n was made for policy.
func (n *Namespace) Serves(policy string) (serves bool, err error) {
	err = n.do(func() error { serves, err = claimed(claimFor(policy)); return err })
	return serves, err
}

// tablePresent reports whether clove's table exists. It lists tables instead of asking for
// one, because the answer to a list tells a missing table from a kernel without nf_tables.
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

// claimed reports whether the chain of a claim exists.
func claimed(name string) (bool, error) {
	// This call comes first, because its error names a missing kernel option.
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

// Clear removes what owner's EnginePlan added, and nothing of another owner. It is idempotent.
func (n *Namespace) Clear(owner string) error {
	return n.do(func() error {
		owned, err := claimed(claimOf(owner))
		if err != nil || !owned {
			return err
		}
		if err := removeRoutes(); err != nil {
			return err
		}
		// The table comes last. It has the claim, so a Clear that failed before can be repeated.
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

// removeRoutes tries all routes of the widest plan, because the plan that was applied is
// not stored.
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

// absent reports whether err means that the rule or route to be removed does not exist, or
// that the kernel has no IPv6 (two errnos).
func absent(err error) bool {
	for _, none := range []unix.Errno{unix.ENOENT, unix.ESRCH, unix.EAFNOSUPPORT, unix.EOPNOTSUPP} {
		if errors.Is(err, none) {
			return true
		}
	}
	return false
}

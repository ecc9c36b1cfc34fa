// Package compare decides whether a child would have more than its parent, in any field of their
// specs.
//
// # Theory of operation
//
// An agent that starts another must not get through it what it may not have itself. Wider takes
// both resolved specs, and what is known of the parent only while it runs (Now), and lists each
// field in which the child would have more. A caller refuses the child if there is any.
//
// Rows has one row for each field of agent.Spec. A row compares, or names the row that compares the
// field with its own, or says what compares it elsewhere, or why any value is allowed. A test walks
// agent.Spec, and fails for a field without a row; each row has a control, a pair of specs in which
// that field alone is wider.
//
// Values are compared by what they mean. Where a policy may bound the field, policies/settings has
// the comparison, and the row calls it: a ceiling, a document that extends another, and a child
// mean the same by more. Rules of the network are compared by package egress, filters by package
// seccomp. What policies cannot name is compared here: mounts by what of the host the parent sees
// through its own, ids, published ports, what starts later or runs on the host.
//
// The host's ceiling is not a parent. It bounds only the fields that its document names, knows no
// home, workspace or user, and says which key of a document was exceeded; so resolve.CheckCeiling
// goes over the settings, and both share what compares a value.
//
// # What it does not do
//
// It reads nothing of the host: paths are canonical, and Now.Beneath looks at owners and file
// systems. It does not compare grants and budgets, which change while the parent runs. It does not
// add up: what several children use together is bounded by accounts and cgroups.
package compare

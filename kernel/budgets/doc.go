// Package budgets is the service of budgets: accounts of runs, names, namespaces and users, and what
// is reserved and spent in them. Package kernel/budget decides; this package keeps the rows, sums by
// day, and what was spent in the last minute.
//
// It answers the stages budget and settle of every call (Reserve, Settle). Amounts that
// clove itself spends for an agent, such as tokens of models, go through package kernel/ledger, with the
// chains of this package. It knows no other service.
package budgets

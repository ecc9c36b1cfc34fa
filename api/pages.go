package api

import "encoding/json"

// A method that lists in parts has parameters with After and a result with Next, the cursor of the
// following part. WithAfter and Part are how package client continues at it; Part has the cursor
// second, and its zero value after the last part.

// WithAfter returns the parameters with another cursor. Limit stays: it bounds each part.
func (p ListParams) WithAfter(cursor string) ListParams { p.After = cursor; return p }

// Part returns the runs, each with its reason.
func (r ListResult) Part() ([]RunResult, string) {
	runs := make([]RunResult, len(r.Runs))
	for i, run := range r.Runs {
		runs[i] = RunResult{Run: run, Reason: r.Reasons[run.Spec.ID]}
	}
	return runs, r.Next
}

// WithAfter returns the parameters with another cursor.
func (p ManifestListParams) WithAfter(cursor string) ManifestListParams { p.After = cursor; return p }

// Part returns the manifests.
func (r ManifestListResult) Part() ([]AddedManifest, string) { return r.Manifests, r.Next }

// WithAfter returns the parameters with another cursor.
func (p ChildListParams) WithAfter(cursor string) ChildListParams { p.After = cursor; return p }

// Part returns the runs.
func (r ChildListResult) Part() ([]Child, string) { return r.Children, r.Next }

// WithAfter returns the parameters with another cursor.
func (p GrantListParams) WithAfter(cursor string) GrantListParams { p.After = cursor; return p }

// Part returns the grants.
func (r GrantListResult) Part() ([]Grant, string) { return r.Grants, r.Next }

// WithAfter returns the parameters with another cursor.
func (p OfferListParams) WithAfter(cursor string) OfferListParams { p.After = cursor; return p }

// Part returns the offers.
func (r OfferListResult) Part() ([]Offer, string) { return r.Offers, r.Next }

// WithAfter returns the parameters with another cursor.
func (p BudgetListParams) WithAfter(cursor string) BudgetListParams { p.After = cursor; return p }

// Part returns the lines.
func (r BudgetListResult) Part() ([]Budget, string) { return r.Budgets, r.Next }

// WithAfter returns the parameters with another cursor.
func (p BudgetReportParams) WithAfter(cursor string) BudgetReportParams { p.After = cursor; return p }

// Part returns the sums.
func (r BudgetReportResult) Part() ([]DaySum, string) { return r.Days, r.Next }

// WithAfter returns the parameters with another cursor.
func (p AuditReadParams) WithAfter(cursor uint64) AuditReadParams { p.After = cursor; return p }

// Part returns the records, perhaps none before the last part.
func (r AuditReadResult) Part() ([]json.RawMessage, uint64) { return r.Records, r.Next }

// WithAfter returns the parameters with another cursor.
func (p NameListParams) WithAfter(cursor string) NameListParams { p.After = cursor; return p }

// WithAfter returns the parameters with another cursor.
func (p NameQueryParams) WithAfter(cursor string) NameQueryParams { p.After = cursor; return p }

// Part returns the names.
func (r NameListResult) Part() ([]Name, string) { return r.Names, r.Next }

// WithAfter returns the parameters with another cursor.
func (p BlobListParams) WithAfter(cursor string) BlobListParams { p.After = cursor; return p }

// Part returns the blobs of one answer.
func (r BlobListResult) Part() ([]KeptBlob, string) { return r.Blobs, r.Next }

// WithAfter returns the parameters with another cursor.
func (p MailBoxesParams) WithAfter(cursor string) MailBoxesParams { p.After = cursor; return p }

// Part returns the mailboxes.
func (r MailBoxesResult) Part() ([]Mailbox, string) { return r.Mailboxes, r.Next }

// WithAfter returns the parameters with another cursor.
func (p MailReadParams) WithAfter(cursor string) MailReadParams { p.After = cursor; return p }

// Part returns the messages.
func (r MailReadResult) Part() ([]Mail, string) { return r.Messages, r.Next }

// WithAfter returns the parameters with another cursor.
func (p MailDeadParams) WithAfter(cursor string) MailDeadParams { p.After = cursor; return p }

// Part returns the letters.
func (r MailDeadResult) Part() ([]DeadLetter, string) { return r.Letters, r.Next }

// WithAfter returns the parameters with another cursor.
func (p ApprovalListParams) WithAfter(cursor string) ApprovalListParams { p.After = cursor; return p }

// WithAfter returns the parameters with another cursor.
func (p ApprovalOwnParams) WithAfter(cursor string) ApprovalOwnParams { p.After = cursor; return p }

// Part returns the questions.
func (r ApprovalListResult) Part() ([]Approval, string) { return r.Approvals, r.Next }

// WithAfter returns the parameters with another cursor.
func (p JobsListParams) WithAfter(cursor string) JobsListParams { p.After = cursor; return p }

// Part returns the jobs.
func (r JobsListResult) Part() ([]Job, string) { return r.Jobs, r.Next }

// WithAfter returns the parameters with another cursor.
func (p QueueListParams) WithAfter(cursor string) QueueListParams { p.After = cursor; return p }

// Part returns the queues.
func (r QueueListResult) Part() ([]Queue, string) { return r.Queues, r.Next }

// WithAfter returns the parameters with another cursor.
func (p StateListParams) WithAfter(cursor string) StateListParams { p.After = cursor; return p }

// WithAfter returns the parameters with another cursor.
func (p StateQueryParams) WithAfter(cursor string) StateQueryParams { p.After = cursor; return p }

// Part returns the keys.
func (r StateListResult) Part() ([]StateEntry, string) { return r.Keys, r.Next }

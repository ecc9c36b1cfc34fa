package metrics

import (
	"strings"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
	"clove.run/clove/scheduler"
)

// Kind is what Prometheus calls a metric's type.
type Kind string

// The kinds.
const (
	Counter   Kind = "counter"
	Gauge     Kind = "gauge"
	Histogram Kind = "histogram"
)

// Label is a dimension with a closed set of values; none: Of says what
// bounds it.
type Label struct {
	Name   string
	Values []string
	Of     string // where Values is empty: what the values are
}

// Metric is one row of the table.
type Metric struct {
	Name    string
	Kind    Kind
	Labels  []Label
	Buckets []float64 // upper bounds of a histogram, in the unit of its name
	Help    string
}

// The names. Those of gauges are for the code that answers a scrape.
const (
	starts         = "clove_starts_total"
	ends           = "clove_ends_total"
	lost           = "clove_supervisors_lost_total"
	startSeconds   = "clove_start_seconds"
	queueSeconds   = "clove_queue_wait_seconds"
	restarts       = "clove_restarts_total"
	giveUps        = "clove_restart_give_ups_total"
	limitHits      = "clove_limit_hits_total"
	forksRefused   = "clove_forks_refused_total"
	cpuSeconds     = "clove_cpu_seconds_total"
	denials        = "clove_network_denials_total"
	gateReceived   = "clove_gate_receive_bytes_total"
	gateSent       = "clove_gate_transmit_bytes_total"
	gateOpened     = "clove_gate_connections_total"
	unseen         = "clove_occurrences_unseen_total"
	commitSeconds  = "clove_store_commit_seconds"
	storeErrors    = "clove_store_errors_total"
	requests       = "clove_api_requests_total"
	requestSeconds = "clove_api_request_seconds"
	refusals       = "clove_api_connections_refused_total"
	dropped        = "clove_event_notifications_dropped_total"
	kernelCalls    = "clove_kernel_calls_total"
	kernelRefusals = "clove_kernel_refusals_total"
	kernelSeconds  = "clove_kernel_call_seconds"
	budgetMarks    = "clove_budget_marks_total"
	approvalsTotal = "clove_approvals_total"
	modelCalls     = "clove_model_calls_total"
	modelRefusals  = "clove_model_refusals_total"
	modelTokens    = "clove_model_tokens_total"
	modelCost      = "clove_model_cost_dollars_total"
	modelWait      = "clove_model_wait_seconds"
	genDuration    = "gen_ai_client_operation_duration_seconds"
	genFirst       = "gen_ai_client_operation_time_to_first_chunk_seconds"
	genTokens      = "gen_ai_client_token_usage"

	Agents         = "clove_agents"
	Queue          = "clove_queue_length"
	MemoryCounted  = "clove_memory_counted_bytes"
	MemoryLimit    = "clove_memory_counted_limit_bytes"
	Draining       = "clove_draining"
	StoreSize      = "clove_store_size_bytes"
	Connections    = "clove_api_connections"
	AuditRecords   = "clove_audit_records"
	AuditWaiting   = "clove_audit_waiting"
	AuditQueued    = "clove_audit_queued"
	AgentSockets   = "clove_agent_sockets"
	Mailboxes      = "clove_mailboxes"
	MailMessages   = "clove_mail_messages"
	MailDead       = "clove_mail_dead_letters"
	Jobs           = "clove_jobs"
	JobQueues      = "clove_job_queues"
	Names          = "clove_names"
	Grants         = "clove_grants"
	Accounts       = "clove_budget_accounts"
	AccountsSpent  = "clove_budget_accounts_spent"
	Approvals      = "clove_approvals_waiting"
	ModelsWaiting  = "clove_model_calls_waiting"
	ModelsInFlight = "clove_model_calls_in_flight"
	BuildInfo      = "clove_build_info"
)

// Buckets in seconds. A launch takes some tens of milliseconds, a commit one
// or two, and a call without a launch less.
var (
	startBuckets  = []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	queueBuckets  = []float64{.01, .1, 1, 5, 30, 60, 300, 900, 3600, 14400, 86400}
	commitBuckets = []float64{.001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	callBuckets   = []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10}
)

// Unknown stands for a method that is not of the table: callers choose what
// they send.
const Unknown = "unknown"

// Done is the code of a call without an error.
const Done = "ok"

// The callers of methods about grants and budgets.
const (
	ByAgent = "agent"
	ByUser  = "user"
)

// otherRule stands for refusals that no rule decided: the object of the call does not exist, or is
// not valid.
const otherRule = "none"

// Rules are the values of the label rule: those of errors, without what they name.
var Rules = []string{api.RuleMethods, api.RuleOwnRun, ruleWord(api.RuleGrant), ruleWord(api.RuleBudget), ruleWord(api.RuleCounted), api.RuleManifest, api.RuleNetwork, api.RuleMailbox, otherRule}

// ruleWord is a rule without what it names, such as a grant's id.
func ruleWord(rule string) string {
	word, _, _ := strings.Cut(rule, ":")
	return word
}

// Marks are what happens to a budget, as the event of it is called.
var Marks = []agent.RunEventKind{agent.RunBudgetWarned, agent.RunBudgetEnded, agent.RunBudgetPaused}

// ApprovalKinds and ApprovalOutcomes are the values of the labels of questions to people.
var (
	ApprovalKinds    = agent.Asks
	ApprovalOutcomes = []string{"asked", string(api.ApprovalAllowed), string(api.ApprovalDenied), string(api.ApprovalExpired), string(api.ApprovalGone)}
)

// Limits are the values of the label limit.
var Limits = []string{agent.ControlMemory, agent.LimitHostMemory, agent.LimitTreeMemory, agent.ControlSockets, agent.ControlPids, agent.ControlDisk, agent.ControlOutput, agent.ControlCPUTime, agent.ControlWallClock, budgetLimit}

// budgetLimit stands for every dimension of a budget: callers choose the names of their own.
const budgetLimit = "budget"

// Table is every metric of clove's own, in the order of the document.
var Table = []Metric{
	{Agents, Gauge, []Label{{Name: "state", Values: words(agent.States)}}, nil, "Runs of all users in each state."},
	{starts, Counter, nil, nil, "Agents that began to execute."},
	{startSeconds, Histogram, nil, startBuckets, "From leaving the queue until the agent executes."},
	{ends, Counter, []Label{{Name: "status", Values: words(agent.Statuses)}}, nil, "Runs that ended, by the status of their record."},
	{lost, Counter, nil, nil, "Runs whose supervisor died. Another clove process ended them; they are among the ends."},
	{restarts, Counter, nil, nil, "Ended runs that were queued again, by their policy or by a caller."},
	{giveUps, Counter, nil, nil, "Runs whose restart policy had no restarts left."},
	{limitHits, Counter, []Label{{Name: "limit", Values: Limits}}, nil, "Ended runs that reached a limit: those that it ended, and for pids those with a refused fork."},
	{forksRefused, Counter, nil, nil, "Forks that the pids limit refused to runs that have ended."},
	{cpuSeconds, Counter, nil, nil, "CPU time of runs that have ended."},
	{Queue, Gauge, []Label{{Name: "reason", Values: scheduler.Waits}}, nil, "Runs that wait, by the reason."},
	{queueSeconds, Histogram, nil, queueBuckets, "From joining the queue to leaving it for a start; a delay or a backoff counts."},
	{MemoryCounted, Gauge, nil, nil, "What all runs that start or run count with: the memory that they use, and a reserve for each."},
	{MemoryLimit, Gauge, nil, nil, "The most that this may be (memory_share); 0: no limit."},
	{Draining, Gauge, nil, nil, "1 while cloved starts nothing because it is drained."},
	{denials, Counter, nil, nil, "Connections, flows and names that the gates of ended runs refused."},
	{gateReceived, Counter, nil, nil, "Bytes that agents received through their gates, counted at the end of each run."},
	{gateSent, Counter, nil, nil, "Bytes that agents sent through their gates, counted at the end of each run."},
	{gateOpened, Counter, nil, nil, "Connections and flows through the gates of ended runs."},
	{StoreSize, Gauge, nil, nil, "Size of the store's file."},
	{commitSeconds, Histogram, nil, commitBuckets, "A change of the store by cloved, from waiting for the lock until it is on the disk."},
	{storeErrors, Counter, nil, nil, "Uses of the store by cloved that failed because of its file, its disk or its lock."},
	{requests, Counter, []Label{{Name: "method", Of: "the API's methods, and unknown"}, {Name: "code", Of: "ok, and the words of the API's errors"}}, nil,
		"Requests that were answered, and sessions that were opened."},
	{requestSeconds, Histogram, []Label{{Name: "method", Of: "the API's methods that answer once"}}, callBuckets, "Until a request was answered. Streams and sessions are not in it."},
	{Connections, Gauge, nil, nil, "Connections to the API that are open."},
	{refusals, Counter, []Label{{Name: "reason", Values: []string{"denied", "draining", "busy"}}}, nil, "Connections to the API that were refused."},
	{dropped, Counter, nil, nil, "Events that a reader of event.follow missed because it was too slow."},
	{unseen, Counter, nil, nil, "Events that were dropped before they were counted: the counters of runs are too low by this number."},
	{kernelCalls, Counter, []Label{{Name: "caller", Of: "agent, user"}, {Name: "method", Of: "the API's methods about grants and budgets, and unknown"}, {Name: "code", Of: "ok, and the words of the API's errors"}}, nil,
		"Calls about grants and budgets, of agents and of users, with those that were refused."},
	{kernelRefusals, Counter, []Label{{Name: "rule", Values: Rules}}, nil, "Such calls that were refused, by the rule that decided."},
	{kernelSeconds, Histogram, []Label{{Name: "caller", Values: []string{ByAgent, ByUser}}}, callBuckets, "Until such a call was decided, and a change was on the disk."},
	{budgetMarks, Counter, []Label{{Name: "mark", Values: words(Marks)}}, nil, "Budgets that reached their mark, or of which nothing was left."},
	{approvalsTotal, Counter, []Label{{Name: "kind", Values: ApprovalKinds}, {Name: "outcome", Values: ApprovalOutcomes}}, nil, "Questions to people: asked when they were new, and how each ended."},
	{Approvals, Gauge, nil, nil, "Questions that wait for people."},
	{modelCalls, Counter, []Label{model, provider, {Name: "outcome", Values: words(models.Outcomes)}}, nil, "Calls of models that ended."},
	{modelRefusals, Counter, []Label{{Name: "reason", Values: words(link.Reasons)}}, nil, "Calls of models that clove refused, by the reason."},
	{modelTokens, Counter, []Label{model, provider, {Name: "kind", Values: TokenKinds}}, nil,
		"Tokens that were paid. in excludes what was read from or written to the provider's cache; reasoning is a part of out."},
	{modelCost, Counter, []Label{model, provider}, nil, "What calls of models with a price cost, in US dollars."},
	{modelWait, Histogram, []Label{provider}, waitBuckets, "Until a call had its turn at the provider."},
	{ModelsWaiting, Gauge, []Label{provider}, nil, "Calls that wait for their turn."},
	{ModelsInFlight, Gauge, []Label{provider}, nil, "Calls that are being made."},
	{genDuration, Histogram, append(genAI(), Label{Name: "error_type", Of: "the outcome; empty for ok"}), genSeconds, "From the request to the provider until the end of its answer."},
	{genFirst, Histogram, genAI(), genSeconds, "The same until the first byte of the answer. Only streams are in it."},
	{genTokens, Histogram, append(genAI(), Label{Name: "gen_ai_token_type", Values: []string{"input", "output"}}), genTokenBuckets,
		"Tokens of a call that were paid; input includes what was read from or written to the provider's cache."},
	{AgentSockets, Gauge, nil, nil, "Live agents with a socket of their own."},
	{Mailboxes, Gauge, nil, nil, "Mailboxes of runs and of reserved names. A run has one from the first message to it on."},
	{MailMessages, Gauge, nil, nil, "Messages that were not acknowledged, in all mailboxes."},
	{MailDead, Gauge, nil, nil, "Dead letters in all mailboxes: messages that have expired or were rejected."},
	{JobQueues, Gauge, nil, nil, "Queues of jobs."},
	{Jobs, Gauge, []Label{{Name: "state", Values: api.JobStates}}, nil, "Jobs in all queues, by their state; done are the last ones of each queue."},
	{Names, Gauge, nil, nil, "Names that runs hold or that are reserved, and topics with subscribers."},
	{Grants, Gauge, nil, nil, "Grants of all runs."},
	{Accounts, Gauge, nil, nil, "Accounts of budgets, those of runs included."},
	{AccountsSpent, Gauge, nil, nil, "Those with a limit of which nothing is left."},
	{AuditRecords, Gauge, nil, nil, "Number of the last record of the audit log."},
	{AuditWaiting, Gauge, nil, nil, "Entries of the audit log that are in memory only: checks and refusals of the last moment, and all while its disk is full."},
	{AuditQueued, Gauge, nil, nil, "Entries of decisions that are in kernel.db and not in the audit log yet."},
	{BuildInfo, Gauge, []Label{{Name: "version", Of: "one"}, {Name: "goversion", Of: "one"}, {Name: "api", Of: "one"}}, nil, "Always 1; the labels name the versions."},
}

// words makes labels of named strings.
func words[S ~string](list []S) []string {
	texts := make([]string, len(list))
	for i, s := range list {
		texts[i] = string(s)
	}
	return texts
}

// methodOf keeps the label closed: a caller that sends other names must not add a series
// for each.
func methodOf(name string) string {
	if _, known := methods.Find(name); known {
		return name
	}
	return Unknown
}

package mcp

import (
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
)

// service is a method of the kernel's as a tool.
type service struct {
	tool   string
	method api.Method
	doc    string   // for models
	fields []field  // of the parameters: those that a model needs
	hint   hint     // what it changes
	needs  []string // it is shown to runs that hold a grant of one of these kinds; empty: to all
}

// field is a parameter.
type field struct {
	name     string
	doc      string
	required bool
}

// hint is what a call may change.
type hint int

const (
	reads     hint = iota // nothing
	adds                  // something more
	overwrite             // what was there
)

// prefix is that of the services' names.
const prefix = "clove_"

// services are in the order of the list. It is the package's own table.
var services = []service{
	{tool: "agent_get", method: agents.AgentGet.Method(), doc: "Says what this agent is: its name, namespace and parent, what its grants let it do, and what is left of its budgets."},
	{tool: "budget_get", method: agents.BudgetGet.Method(), doc: "Lists every budget that this agent spends from, with what is used and what is left."},

	{tool: "mail_send", method: agents.MailSend.Method(), hint: adds, needs: []string{"send"}, fields: []field{
		{"to", "the registered name, or the name or id of a run of the same namespace, or parent", true},
		{"body", "any JSON value, of at most 48 KiB", true},
		{"priority", "0 to 9; higher ones are received first", false},
		{"asks", "true: the receiver is to reply; clove_mail_answer waits for that", false},
		{"expires_ms", "milliseconds until it expires", false}},
		doc: "Sends a message to another agent. It is kept until its receiver has acknowledged it."},
	{tool: "mail_receive", method: agents.MailReceive.Method(), hint: reads, fields: []field{
		{"most", "how many messages, 1 to 64; absent: 1", false},
		{"after", "the id of the last message that you have; absent: from the first that is not acknowledged", false},
		{within, "how long to wait for one, in milliseconds; absent: 45000", false}},
		doc: "Waits for messages to this agent and returns them. Each comes again until clove_mail_ack has its id."},
	{tool: "mail_ack", method: agents.MailAck.Method(), hint: overwrite, fields: []field{
		{"ids", "of messages, 1 to 64", true},
		{"reject", "why they are refused: they become dead letters", false}},
		doc: "Takes messages that are dealt with out of the mailbox."},
	{tool: "mail_reply", method: agents.MailReply.Method(), hint: adds, fields: []field{
		{"id", "of the message", true},
		{"body", "any JSON value, of at most 48 KiB", true},
		{"ack", "true: take the message out of the mailbox", false}},
		doc: "Answers a message that asks, once."},
	{tool: "mail_answer", method: agents.MailAnswer.Method(), hint: reads, needs: []string{"send"}, fields: []field{
		{"id", "of the message that this agent sent with asks", true},
		{within, "how long to wait for it, in milliseconds; absent: 45000", false}},
		doc: "Waits for the answer to a message that this agent sent with asks."},

	{tool: "state_get", method: agents.StateGet.Method(), hint: reads, fields: append([]field{
		{"path", "the key: parts with / between them, as plans/today", true}}, scope...),
		doc: "Returns a key with its value and version, which is 0 where there is no such key."},
	{tool: "state_set", method: agents.StateSet.Method(), hint: overwrite, fields: append([]field{
		{"path", "the key: parts with / between them, as plans/today", true},
		{"value", "any JSON value, of at most 48 KiB", true},
		{"if_version", "set it only if the key has this version; 0: only if there is none", false},
		{"expires_ms", "milliseconds until it expires", false}}, scope...),
		doc: "Sets a key to a value, which is kept."},
	{tool: "state_list", method: agents.StateList.Method(), hint: reads, fields: append([]field{
		{"path", "only this key and those below it", false},
		{"after", "next of the answer before", false}}, scope...),
		doc: "Lists keys, without their values."},
	{tool: "state_delete", method: agents.StateDelete.Method(), hint: overwrite, fields: append([]field{
		{"path", "the key", true},
		{"if_version", "remove it only if the key has this version", false}}, scope...),
		doc: "Removes a key."},

	{tool: "job_add", method: agents.JobAdd.Method(), hint: adds, needs: []string{"send"}, fields: []field{
		{"queue", "a queue of the namespace", true},
		{"body", "what is to be done: any JSON value, of at most 48 KiB", true},
		{"priority", "0 to 9; higher ones are taken first", false},
		{"delay_ms", "milliseconds until it may be taken", false},
		{"deadline_ms", "milliseconds until it is given up", false},
		{"attempts", "how often it is tried", false}},
		doc: "Adds a job to a queue, for whichever agent claims it."},
	{tool: "job_claim", method: agents.JobClaim.Method(), hint: overwrite, needs: []string{"name"}, fields: []field{
		{"queue", "a queue of the namespace", true},
		{within, "how long to wait for a job, in milliseconds; absent: 45000", false}},
		doc: "Waits for the next job of a queue and takes it. Complete or fail it when the work is done."},
	{tool: "job_complete", method: agents.JobComplete.Method(), hint: overwrite, needs: []string{"name"}, fields: []field{
		{"id", "of the job, which this agent holds", true},
		{"result", "any JSON value, of at most 4 KiB", false}},
		doc: "Says that a job is done."},
	{tool: "job_fail", method: agents.JobFail.Method(), hint: overwrite, needs: []string{"name"}, fields: []field{
		{"id", "of the job, which this agent holds", true},
		{"why", "the reason", true},
		{"dead", "true: it is not tried again", false}},
		doc: "Gives a job back that could not be done: it is tried again after a pause, or is dead."},
	{tool: "job_get", method: agents.JobGet.Method(), hint: reads, needs: []string{"send", "name"}, fields: []field{
		{"id", "of a job that this agent holds or has added", true}},
		doc: "Returns a job: its state, and its result when it is done."},

	{tool: "agent_spawn", method: agents.AgentSpawn.Method(), hint: adds, fields: []field{
		{"manifest", "the name of the agent to start", true},
		{"name", "what to call it", false},
		{"args", "arguments; of an agent that is a model, the prompt", false},
		{"instructions", "behind those of the manifest, for an agent that is a model", false},
		{"budgets", "DIMENSION=AMOUNT of each budget that is to be less than the manifest's", false},
		{"grants", "KIND:PATTERN[:RIGHTS] of each: a part of the manifest's; absent: all", false},
		{"why", "for the people who may be asked about it", false}},
		doc: "Starts another agent, a child of this one, with no more rights than this one has. It needs a grant of kind spawn, or the yes of a person. clove_agent_wait returns its result."},
	{tool: "agent_wait", method: agents.AgentWait.Method(), hint: reads, fields: []field{
		{"child", "the id or name of an agent that this one has started", true}},
		doc: "Waits until a child ends, and returns how, the end of its output, and its result. It waits for 45 seconds: call it again where the child goes on."},
	{tool: "agent_list", method: agents.AgentList.Method(), hint: reads, fields: []field{
		{"after", "next of the answer before", false}},
		doc: "Lists the children of this agent, with those that have ended."},
	{tool: "agent_signal", method: agents.AgentSignal.Method(), hint: overwrite, fields: []field{
		{"child", "the id or name of an agent that this one has started", true},
		{"signal", "TERM or KILL end it", true},
		{"reason", "for its record", false}},
		doc: "Sends a child a signal, as to end it."},

	{tool: "approval_list", method: agents.ApprovalOwn.Method(), hint: reads, fields: []field{
		{"after", "next of the answer before", false}},
		doc: "Lists the questions about this agent that wait for people, and their answers."},
	{tool: "approval_cancel", method: agents.ApprovalCancel.Method(), hint: overwrite, fields: []field{
		{"id", "of the question", true}},
		doc: "Takes a question back that waits for people. What asked is refused then."},
}

// scope are the parameters that choose between which runs a key is shared.
var scope = []field{
	{"scope", "run: this agent's own keys; name or namespace: shared ones, which need a grant of kind state; absent: that of name, or else run", false},
	{"name", "of the scope name", false},
}

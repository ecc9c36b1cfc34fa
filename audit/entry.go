package audit

import (
	"crypto/sha256"
	"encoding/hex"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"clove.run/clove/agent"
)

// Kind groups entries by what happened.
type Kind string

// The kinds of entries. Readers must expect others.
const (
	KindDecision Kind = "decision" // a call of an agent was allowed or refused
	KindStart    Kind = "start"    // a run started
	KindEnd      Kind = "end"      // a run ended
	KindLimit    Kind = "limit"    // a limit was changed
	KindAdmin    Kind = "admin"    // a caller on the host did something
	KindPanic    Kind = "panic"    // all agents were ended, or may start again
	// The following are written by this package.
	KindGap    Kind = "gap"    // entries before this one may be missing
	KindLink   Kind = "link"   // the log of a run of its own
	KindRemove Kind = "remove" // the oldest records were removed
)

// The usual verdicts. A refusal may have the word of its error instead of VerdictDeny.
const (
	VerdictAllow = "allow"
	VerdictDeny  = "deny"
)

// Version is that of the records that this package writes.
const Version = 1

// Entry is one record. Callers leave Version, Number and Prev empty, and may leave Time
// empty for now. Texts are cut to their bounds when they are written.
type Entry struct {
	Version     int       `json:"v"`
	Number      uint64    `json:"number"` // from 1, without a gap
	Time        time.Time `json:"time"`   // UTC, microseconds
	Kind        Kind      `json:"kind"`
	Owner       uint32    `json:"owner"` // uid whose run or namespace this is about; 0 for the host's own
	Namespace   string    `json:"namespace,omitempty"`
	Agent       string    `json:"agent,omitempty"` // the run's name
	Run         agent.ID  `json:"run,omitempty"`
	Principal   string    `json:"principal,omitempty"` // who called: PrincipalUser, PrincipalRun or PrincipalService
	Method      string    `json:"method,omitempty"`
	What        string    `json:"what,omitempty"`   // the text of a grant, a limit, a reason: at most 512 bytes
	Reason      string    `json:"reason,omitempty"` // why a grant was asked for, in the asker's words
	Verdict     string    `json:"verdict,omitempty"`
	Rule        string    `json:"rule,omitempty"` // the rule or grant that decided
	Code        string    `json:"code,omitempty"` // of the error; of a gap its cause
	Taints      []string  `json:"taints,omitempty"`
	Approval    string    `json:"approval,omitempty"`
	Object      string    `json:"object,omitempty"`      // ids of what the call made, or took: a run, messages; at most 512 bytes
	Causation   string    `json:"causation,omitempty"`   // what this is a consequence of
	Correlation string    `json:"correlation,omitempty"` // what belongs together
	Digest      string    `json:"digest,omitempty"`      // Digest of the canonical arguments; of a link the run's last hash
	Count       uint64    `json:"count,omitempty"`       // of a link its records; of a gap the most entries that can be missing
	Queue       uint64    `json:"queue,omitempty"`       // the entry's number in kernel.db's queue
	Prev        string    `json:"prev"`                  // base64 hash of the record before; zeros for the first
}

// PrincipalUser is a caller on the host.
func PrincipalUser(uid uint32) string { return "uid:" + strconv.FormatUint(uint64(uid), 10) }

// PrincipalRun is an agent as a caller.
func PrincipalRun(run agent.ID) string { return "run:" + string(run) }

// PrincipalService is a service of clove's that acts for an agent.
func PrincipalService(name string) string { return "service:" + name }

// Digest is the hexadecimal SHA-256 of arguments in their canonical form.
func Digest(canonical []byte) string {
	sum := sha256.Sum256(canonical)
	return hex.EncodeToString(sum[:])
}

// Bounds of an entry, in bytes before escaping.
const (
	whatMax   = 512
	textMax   = 256
	taintMax  = 128
	taintsMax = 32
)

// bounded cuts every text to its bound. It copies the taints, which a caller may change.
func (e Entry) bounded() Entry {
	for _, text := range []*string{&e.Namespace, &e.Agent, (*string)(&e.Run), (*string)(&e.Kind), &e.Principal, &e.Method, &e.Reason, &e.Verdict,
		&e.Rule, &e.Code, &e.Approval, &e.Causation, &e.Correlation, &e.Digest} {
		*text = cut(*text, textMax)
	}
	e.What, e.Object = cut(e.What, whatMax), cut(e.Object, whatMax)
	var taints []string
	for _, taint := range e.Taints[:min(len(e.Taints), taintsMax)] {
		taints = append(taints, cut(taint, taintMax))
	}
	if len(e.Taints) > taintsMax {
		taints[taintsMax-1] = ellipsis
	}
	e.Taints = taints
	return e
}

const ellipsis = "…"

// cut shortens text to at most limit bytes, at a character's end, and marks that it did.
// Invalid UTF-8 becomes U+FFFD first, which is longer.
func cut(text string, limit int) string {
	text = strings.ToValidUTF8(text[:min(len(text), 4*limit)], "\uFFFD")
	if len(text) <= limit {
		return text
	}
	end := limit - len(ellipsis)
	for !utf8.RuneStart(text[end]) {
		end--
	}
	return text[:end] + ellipsis
}

// PanicEntry is the one record of a panic that ended so many agents. An empty reason says
// that runs may start again.
func PanicEntry(uid uint32, reason string, ended int) Entry {
	e := Entry{Kind: KindPanic, Principal: PrincipalUser(uid), Method: "panic", What: reason, Count: uint64(ended)}
	if reason == "" {
		e.Method = "panic.clear"
	}
	return e
}

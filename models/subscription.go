package models

import (
	"slices"
	"strings"
)

// Subscription is the table's row of one client, a coding agent, whose subscription's token can
// be the key of a provider. The token is sent as a bearer token.
type Subscription struct {
	Client  string // as models.yaml names it
	Family  Family
	Formats []Format // that the client's service has
	// Passes are the headers of the agent's request that go on to the service: those by which
	// it knows its client and a session. No other header of the agent's does.
	Passes []PassedHeader
	// Beta is added to the header anthropic-beta: with it, the service takes a token.
	Beta string
	// Account is the header for the account's id, which models.yaml has; empty: the service
	// takes none.
	Account string
	// NoMaximum says that the service refuses requests that name a maximum of output.
	NoMaximum bool
	// Renew says how a new token is made.
	Renew string
}

// PassedHeader is a header that may pass.
type PassedHeader struct {
	Name       string // in Go's canonical form
	MaxBytes   int
	Characters string // that its value may have; empty: printable ASCII, with spaces
}

// identifier has the characters of ids and words.
const identifier = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_."

// Subscriptions is the table. The headers are those that Claude Code 2.1.330 and Codex 0.169.0
// send; what counts the client's own use (X-Stainless-…, X-Codex-Turn-Metadata) is left out. That
// Codex's service takes no maximum is from reports of its users.
var Subscriptions = []Subscription{
	{
		Client: "claude-code", Family: Anthropic, Formats: []Format{AnthropicMessages, AnthropicCount},
		Passes: []PassedHeader{{"User-Agent", 256, ""}, {"X-App", 32, identifier}, {"X-Claude-Code-Session-Id", 64, identifier}},
		Beta:   "oauth-2025-04-20",
		Renew:  "claude setup-token makes one",
	},
	{
		Client: "codex", Family: OpenAI, Formats: []Format{OpenAIResponses},
		Passes:  []PassedHeader{{"User-Agent", 256, ""}, {"Originator", 64, ""}, {"Session-Id", 64, identifier}, {"Thread-Id", 64, identifier}, {"X-Client-Request-Id", 64, identifier}},
		Account: "Chatgpt-Account-Id", NoMaximum: true,
		Renew: "codex login makes one: tokens.access_token in ~/.codex/auth.json",
	},
}

// SubscriptionOf returns the row of a client; nil: there is none.
func SubscriptionOf(client string) *Subscription {
	i := slices.IndexFunc(Subscriptions, func(s Subscription) bool { return s.Client == client })
	if i < 0 {
		return nil
	}
	return &Subscriptions[i]
}

// Lets reports whether a header with this value may pass.
func (s *Subscription) Lets(name, value string) bool {
	return slices.ContainsFunc(s.Passes, func(h PassedHeader) bool { return h.Name == name && h.takes(value) })
}

func (h PassedHeader) takes(value string) bool {
	if value == "" || len(value) > h.MaxBytes || strings.TrimSpace(value) != value {
		return false
	}
	if h.Characters != "" {
		return strings.Trim(value, h.Characters) == ""
	}
	return !strings.ContainsFunc(value, func(r rune) bool { return r < ' ' || r > '~' })
}

// PassedHeaders returns those of a request's headers that some client's row lets pass in a format.
// get returns the values of a header. One that occurs twice is left out: servers differ in which
// of the two they read.
func PassedHeaders(f Format, get func(name string) []string) map[string]string {
	passed := map[string]string{}
	for _, s := range Subscriptions {
		for _, h := range s.Passes {
			if values := get(h.Name); len(values) == 1 && slices.Contains(s.Formats, f) && h.takes(values[0]) {
				passed[h.Name] = values[0]
			}
		}
	}
	return passed
}

// ArePassed reports whether PassedHeaders may have returned headers for a format.
func ArePassed(f Format, headers map[string]string) bool {
	passed := PassedHeaders(f, func(name string) []string { return []string{headers[name]} })
	return len(passed) == len(headers)
}

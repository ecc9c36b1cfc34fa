package models

import (
	"net/http"
	"slices"
	"strings"
	"testing"
)

// A row lets nothing pass that says who asks, where, or how the request is read.
func TestRowsOfSubscriptions(t *testing.T) {
	t.Parallel()
	for _, s := range Subscriptions {
		if SubscriptionOf(s.Client).Client != s.Client || s.Renew == "" || len(s.Formats) == 0 || (s.Beta != "" && s.Family != Anthropic) {
			t.Errorf("%+v", s)
		}
		for _, f := range s.Formats {
			if f.Family() != s.Family {
				t.Errorf("%s: %s", s.Client, f)
			}
		}
		for _, h := range s.Passes {
			if h.Name != http.CanonicalHeaderKey(h.Name) || h.MaxBytes < 1 || h.MaxBytes > 256 || h.Name == s.Account {
				t.Errorf("%s: %+v", s.Client, h)
			}
			for _, never := range []string{"Authorization", "X-Api-Key", "Cookie", "Anthropic-", "Accept", "Content-", "Connection", "Host", "Transfer-Encoding", "Te", "Trailer", "Upgrade", "Expect", "Forwarded", "X-Forwarded-", "Proxy-"} {
				if h.Name == never || strings.HasSuffix(never, "-") && strings.HasPrefix(h.Name, never) {
					t.Errorf("%s: %s passes", s.Client, h.Name)
				}
			}
		}
	}
	if SubscriptionOf("") != nil || SubscriptionOf("Codex") != nil {
		t.Error("there is a row of no client")
	}
}

func TestValuesOfHeaders(t *testing.T) {
	t.Parallel()
	s := SubscriptionOf("codex")
	for _, row := range []struct {
		name, value string
		passes      bool
	}{
		{"User-Agent", "codex_exec/0.169.0 (Debian 12.0.0; x86_64) xterm (codex_exec; 0.169.0)", true},
		{"User-Agent", strings.Repeat("x", 256), true},
		{"User-Agent", strings.Repeat("x", 257), false},
		{"User-Agent", "", false},
		{"User-Agent", " x", false},
		{"User-Agent", "x ", false},
		{"User-Agent", "x\ty", false},
		{"User-Agent", "x\r\nAuthorization: y", false},
		{"User-Agent", "x\ny", false},
		{"User-Agent", "x\x00y", false},
		{"User-Agent", "x\x7fy", false},
		{"User-Agent", "x\xffy", false},
		{"User-Agent", "grün", false},
		{"user-agent", "x", false},
		{"Session-Id", "01a21eec-6159-7013-a61a-54b53f5ef232", true},
		{"Session-Id", "01a21eec 6159", false},
		{"Session-Id", strings.Repeat("x", 65), false},
		{"X-App", "cli", false}, // another client's
		{"Authorization", "Bearer x", false},
		{"Chatgpt-Account-Id", "x", false},
		{"X-Mine", "x", false},
	} {
		if got := s.Lets(row.name, row.value); got != row.passes {
			t.Errorf("%s: %q: %t", row.name, row.value, got)
		}
	}
}

// Of a request's headers those of its format's clients pass, each once.
func TestPassedHeaders(t *testing.T) {
	t.Parallel()
	h := http.Header{"User-Agent": {"a"}, "X-App": {"cli"}, "Session-Id": {"s"}, "Thread-Id": {"1", "2"}, "Originator": {"b\r\nc"}, "X-Mine": {"m"}, "Authorization": {"Bearer x"}}
	for f, want := range map[Format]string{
		AnthropicMessages: "User-Agent X-App", AnthropicCount: "User-Agent X-App", OpenAIResponses: "Session-Id User-Agent", OpenAIChat: "", "": "",
	} {
		got := PassedHeaders(f, h.Values)
		var names []string
		for name := range got {
			names = append(names, name)
		}
		slices.Sort(names)
		if strings.Join(names, " ") != want || !ArePassed(f, got) || !ArePassed(f, nil) {
			t.Errorf("%s: %v", f, got)
		}
		for _, wrong := range []map[string]string{{"X-Mine": "m"}, {"User-Agent": "a\nb"}, {"Authorization": "x"}, {"": ""}, {"User-Agent": ""}, {"user-agent": "a"}} {
			if ArePassed(f, wrong) {
				t.Errorf("%s: %v", f, wrong)
			}
		}
	}
}

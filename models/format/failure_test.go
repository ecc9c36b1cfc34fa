package format

import (
	"encoding/json"
	"strings"
	"testing"
	"time"

	"clove.run/clove/models"
)

func TestFailure(t *testing.T) {
	t.Parallel()
	for _, row := range []struct {
		cause             Cause
		openai, anthropic int
		code, kind        string
	}{
		{Invalid, 400, 400, "invalid_request", "invalid_request_error"},
		{NotGranted, 403, 403, "permission_denied", "permission_error"},
		{BudgetSpent, 400, 402, "insufficient_quota", "billing_error"},
		{NotFound, 404, 404, "not_found", "not_found_error"},
		{NoUpgrade, 426, 426, "upgrade_required", "invalid_request_error"},
		{UnknownModel, 404, 404, "model_not_found", "not_found_error"},
		{TooLarge, 413, 413, "request_too_large", "request_too_large"},
		{ContextLength, 400, 400, "context_length_exceeded", "invalid_request_error"},
		{RateLimited, 429, 429, "rate_limit_exceeded", "rate_limit_error"},
		{Overloaded, 503, 529, "server_is_overloaded", "overloaded_error"},
		{Unavailable, 502, 502, "server_error", "api_error"},
		{TimedOut, 504, 504, "timeout", "timeout_error"},
		{Cause("of another version"), 502, 502, "server_error", "api_error"},
	} {
		r := Refusal{Cause: row.cause, Param: "model", Message: `no "model"`, Hint: "clove grant"}
		for _, f := range []models.Format{models.OpenAIChat, models.OpenAIResponses} {
			status, body := Failure(f, r)
			var got struct {
				Error struct{ Message, Type, Param, Code string }
			}
			if err := json.Unmarshal(body, &got); err != nil || status != row.openai || got.Error.Code != row.code || got.Error.Param != "model" || !strings.Contains(got.Error.Message, `no "model" (clove grant)`) {
				t.Errorf("%s %s: %d %s", f, row.cause, status, body)
			}
		}
		for _, f := range []models.Format{models.AnthropicMessages, models.AnthropicCount} {
			status, body := Failure(f, r)
			var got struct {
				Type  string
				Error struct{ Type, Message string }
			}
			if err := json.Unmarshal(body, &got); err != nil || status != row.anthropic || got.Type != "error" || got.Error.Type != row.kind || !strings.Contains(got.Error.Message, "no") {
				t.Errorf("%s %s: %d %s", f, row.cause, status, body)
			}
		}
	}
}

// TestOnlyWhatMayHelpIsSentAgain holds the statuses against what the official clients do.
func TestOnlyWhatMayHelpIsSentAgain(t *testing.T) {
	t.Parallel()
	for cause := range forms {
		for _, f := range []models.Format{models.OpenAIChat, models.AnthropicMessages} {
			r := Refusal{Cause: cause}
			status, _ := Failure(f, r)
			if again := status == 408 || status == 409 || status == 429 || status >= 500; again != r.Retryable() {
				t.Errorf("%s %s: status %d, retryable %t", f, cause, status, r.Retryable())
			}
		}
	}
}

func TestAParamIsNullWithoutOne(t *testing.T) {
	t.Parallel()
	if _, body := Failure(models.OpenAIChat, Refusal{Cause: Invalid, Message: "m"}); !strings.Contains(string(body), `"param":null`) {
		t.Errorf("%s", body)
	}
	if _, body := Failure(models.AnthropicMessages, Refusal{Cause: ContextLength, Message: "m"}); !strings.Contains(string(body), `"prompt is too long: m"`) {
		t.Errorf("%s", body)
	}
}

func TestFailureEvent(t *testing.T) {
	t.Parallel()
	r := Refusal{Cause: BudgetSpent, Message: "spent\n\ndata: x"}
	for f, names := range map[models.Format][]string{models.OpenAIChat: {""}, models.OpenAIResponses: {"error", "response.failed"}, models.AnthropicMessages: {"error"}} {
		events := strings.Split(string(FailureEvent(f, r)), "\n\n")
		if len(events) != len(names)+1 || events[len(names)] != "" {
			t.Errorf("%s: %q", f, events)
			continue
		}
		for i, name := range names {
			head, text, _ := strings.Cut(events[i], "data: ")
			if !json.Valid([]byte(text)) || name != "" && head != "event: "+name+"\n" || name != "" && !strings.HasPrefix(text, `{"type":"`+name) {
				t.Errorf("%s: %q", f, events[i])
			}
		}
	}
	if got := string(FailureEvent(models.OpenAIResponses, r)); strings.Count(got, `"code":"insufficient_quota"`) != 3 {
		t.Error(got)
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	for _, row := range []struct {
		family  models.Family
		names   []string
		formats []string
		want    string
	}{
		{models.OpenAI, nil, nil, `{"object":"list","data":[]}`},
		{models.OpenAI, []string{"a", "b"}, nil, `{"object":"list","data":[{"id":"a","object":"model","created":1767323045,"owned_by":"clove"},{"id":"b","object":"model","created":1767323045,"owned_by":"clove"}]}`},
		{models.Anthropic, nil, nil, `{"data":[],"has_more":false,"first_id":null,"last_id":null}`},
		{models.OpenAI, []string{"a"}, []string{"openai-chat"}, `{"object":"list","data":[{"id":"a","object":"model","created":1767323045,"owned_by":"clove","formats":["openai-chat"]}]}`},
		{models.Anthropic, []string{"a"}, nil, `{"data":[{"type":"model","id":"a","display_name":"a","created_at":"2026-01-02T03:04:05Z"}],"has_more":false,"first_id":"a","last_id":"a"}`},
	} {
		if got := string(Models(row.family, row.names, row.formats, at)); got != row.want {
			t.Errorf("%s %v:\n got %s\nwant %s", row.family, row.names, got, row.want)
		}
	}
}

package format

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"clove.run/clove/models"
)

// base is a request that passes, with a place for more fields and one for a part of its
// conversation.
func base(f models.Format, part, fields string) string {
	switch f {
	case models.OpenAIResponses:
		return `{"model":"m","input":[{"role":"user","content":[{"type":"input_text","text":"hello"}` + comma(part) + `]}]` + comma(fields) + `}`
	default:
		return `{"model":"m","messages":[{"role":"user","content":[{"type":"text","text":"hello"}` + comma(part) + `]}]` + comma(fields) + `}`
	}
}

func comma(s string) string {
	if s == "" {
		return ""
	}
	return "," + s
}

func needs(t *testing.T, f models.Format, body string) []models.Need {
	t.Helper()
	r, err := Parse(f, []byte(body))
	if err != nil {
		t.Errorf("%s %s: %v", f, body, err)
		return nil
	}
	return r.Needs
}

// inBody is a request that has what a row is about.
func inBody(field Field, value string) string {
	switch field.Place {
	case Header:
		return base(field.Format, "", "")
	case Top:
		return base(field.Format, "", fmt.Sprintf("%q:%s", field.Name, value))
	case Inside:
		kind := "text"
		if field.Format == models.OpenAIResponses {
			kind = "input_text"
		}
		return base(field.Format, fmt.Sprintf(`{"type":%q,%q:%s}`, kind, field.Name, value), "")
	}
	return base(field.Format, fmt.Sprintf(`{"type":%q}`, field.Name), "")
}

// TestEachRow shows for each row with a condition that the request passes without it, and
// is refused or has the need with it.
func TestEachRow(t *testing.T) {
	t.Parallel()
	for _, f := range []models.Format{models.OpenAIChat, models.OpenAIResponses, models.AnthropicMessages, models.AnthropicCount} {
		if n := needs(t, f, base(f, "", "")); n != nil {
			t.Errorf("%s: the control needs %v", f, n)
		}
	}
	conditions := 0
	for _, field := range Fields() {
		value := `"https://example.com/x"`
		switch {
		case field.Rule == Refused:
			refused(t, field.Format, inBody(field, value), Invalid, "not supported")
		case field.Rule == Written && field.Needs != nil:
			value = "true"
			fallthrough
		case field.Rule == Needed, field.Rule == Inline:
			if got := needs(t, field.Format, inBody(field, value)); !slices.Equal(got, field.Needs) {
				t.Errorf("%s %s needs %v, want %v", field.Format, field.Name, got, field.Needs)
			}
		default:
			continue
		}
		conditions++
		if field.Place == Type {
			continue
		}
		control := "null"
		if field.Rule == Inline {
			control = `"data:image/png;base64,AAAA"`
		}
		if got := needs(t, field.Format, inBody(field, control)); got != nil {
			t.Errorf("%s %s with %s needs %v", field.Format, field.Name, control, got)
		}
	}
	if conditions < 80 {
		t.Errorf("only %d rows have a condition", conditions)
	}
}

func TestRowsThatPassNeedNothing(t *testing.T) {
	t.Parallel()
	for _, field := range Fields() {
		if field.Rule == Passes && field.Place != Top && field.Name != "type" {
			if got := needs(t, field.Format, inBody(field, `"text"`)); got != nil {
				t.Errorf("%s %s needs %v", field.Format, field.Name, got)
			}
		}
	}
}

func TestNoRowOccursTwice(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, field := range Fields() {
		key := fmt.Sprint(field.Format, field.Place, field.Name)
		if seen[key] || field.What == "" || field.Name != strings.ToLower(field.Name) {
			t.Errorf("%s", key)
		}
		seen[key] = true
	}
}

func TestToolsOfTheProvider(t *testing.T) {
	t.Parallel()
	tool, store := models.ProviderTools, models.ProviderState
	for _, row := range []struct {
		f      models.Format
		fields string
		want   []models.Need
	}{
		{models.OpenAIResponses, `"tools":[{"type":"web_search_2026_01_01","filters":{"allowed_domains":["a.example"]},"user_location":{"type":"approximate"}}]`, []models.Need{tool}},
		{models.OpenAIResponses, `"tools":[{"type":"code_interpreter","container":{"type":"auto","file_ids":["f"]}}]`, []models.Need{tool, store}},
		{models.OpenAIResponses, `"tools":[{"type":"code_interpreter"}]`, []models.Need{tool}},
		{models.OpenAIResponses, `"tools":[{"type":"shell","environment":{"type":"container_auto"}}]`, []models.Need{tool}},
		{models.OpenAIResponses, `"tools":[{"type":"shell","environment":{"type":"local"}}]`, nil},
		{models.OpenAIResponses, `"tools":[{"type":"namespace","name":"n","description":"d","tools":[{"type":"mcp","server_label":"x"}]}]`, []models.Need{tool}},
		{models.OpenAIResponses, `"tools":[{"type":"function","name":"web_search","parameters":{"type":"object","properties":{"url":{"type":"string"}}}}]`, nil},
		{models.OpenAIResponses, `"tool_choice":{"type":"image_generation"}`, []models.Need{tool}},
		{models.OpenAIResponses, `"store":false`, nil},
		{models.OpenAIResponses, `"background":false,"previous_response_id":null`, nil},
		{models.OpenAIChat, `"tools":[{"type":"function","function":{"name":"f","parameters":{"$ref":"https://example.com/s.json"}}}]`, []models.Need{tool}},
		{models.OpenAIChat, `"tools":[{"type":"function","function":{"name":"f","parameters":{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/x"}}}]`, nil},
		{models.OpenAIChat, `"chat_template_kwargs":{"enable_thinking":false}`, nil},
		{models.OpenAIChat, `"web_search_options":{}`, []models.Need{tool}},
		{models.OpenAIChat, `"metadata":{"url":"https://example.com","id":"x"}`, nil},
		{models.AnthropicMessages, `"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3}]`, []models.Need{tool}},
		{models.AnthropicMessages, `"tools":[{"type":"bash_20250124","name":"bash"},{"type":"tool_search_tool_bm25_20251119","name":"s"}]`, nil},
		{models.AnthropicMessages, `"mcp_servers":[{"type":"url","name":"n","url":"https://example.com","authorization_token":"t"}]`, []models.Need{tool}},
		{models.AnthropicMessages, `"mcp_servers":[]`, nil},
		{models.AnthropicCount, `"mcp_servers":[{"type":"url","name":"n","url":"https://example.com"}]`, []models.Need{tool}},
		{models.AnthropicMessages, `"container":{"id":"c","skills":[{"type":"anthropic","skill_id":"pdf"}]}`, []models.Need{tool, store}},
		{models.AnthropicMessages, `"diagnostics":{"previous_message_id":"msg_1"}`, []models.Need{store}},
	} {
		if got := needs(t, row.f, base(row.f, "", row.fields)); !slices.Equal(got, row.want) {
			t.Errorf("%s %s needs %v, want %v", row.f, row.fields, got, row.want)
		}
	}
}

// TestStoredItems has items of OpenAI's responses that the provider looks up by id, and
// those that are whole.
func TestStoredItems(t *testing.T) {
	t.Parallel()
	state := []models.Need{models.ProviderState}
	for _, row := range []struct {
		item string
		want []models.Need
	}{
		{`{"type":"item_reference","id":"msg_1"}`, state},
		{`{"id":"msg_1"}`, state},
		{`{"id":"msg_1","type":null}`, state},
		{`{"id":"msg_1","role":"user","content":"hello"}`, nil},
		{`{"type":"message","id":"msg_1","role":"assistant","content":[{"type":"output_text","text":"hello","annotations":[{"type":"url_citation","url":"https://example.com"}]}]}`, nil},
		{`{"type":"reasoning","id":"rs_1","summary":[]}`, state},
		{`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":""}`, state},
		{`{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"gAAA"}`, nil},
		{`{"type":"reasoning","id":"rs_1","summary":[],"content":[{"type":"reasoning_text","text":"hm"}]}`, nil},
		{`{"type":"reasoning","summary":[],"encrypted_content":null}`, nil},
		{`{"type":"function_call","id":"fc_1","call_id":"call_1","name":"f","arguments":"{\"url\":\"https://example.com\"}"}`, nil},
		{`{"type":"function_call_output","call_id":"call_1","output":[{"type":"input_image","image_url":"https://example.com/a.png"}]}`, []models.Need{models.ProviderTools}},
	} {
		body := `{"model":"m","input":[` + row.item + `]}`
		if got := needs(t, models.OpenAIResponses, body); !slices.Equal(got, row.want) {
			t.Errorf("%s needs %v, want %v", row.item, got, row.want)
		}
	}
}

func TestURLsInOtherForms(t *testing.T) {
	t.Parallel()
	for url, want := range map[string]bool{
		"data:image/png;base64,AA": false, "https://example.com": true, " data:image/png": true, "DATA:image/png": true, "file:///etc/passwd": true,
		"//example.com/a": true, "/etc/passwd": true, "gs://b/a": true, "": true,
	} {
		body := base(models.OpenAIChat, fmt.Sprintf(`{"type":"image_url","image_url":{"url":%q}}`, url), "")
		if got := needs(t, models.OpenAIChat, body); (got != nil) != want {
			t.Errorf("%q needs %v", url, got)
		}
	}
	escaped := `{"type":"image_url","image_url":{"url":"\u0064ata:image\/png;base64,AA"}}`
	if got := needs(t, models.OpenAIChat, base(models.OpenAIChat, escaped, "")); got != nil {
		t.Errorf("%s needs %v", escaped, got)
	}
	for data, want := range map[string]bool{"JVBERi0x": false, "data:application/pdf;base64,AA": false, "https://example.com/a.pdf": true, "oss.example/a": true} {
		body := base(models.OpenAIChat, fmt.Sprintf(`{"type":"file","file":{"filename":"a","file_data":%q}}`, data), "")
		if got := needs(t, models.OpenAIChat, body); (got != nil) != want {
			t.Errorf("%q needs %v", data, got)
		}
	}
}

func TestUnknownFields(t *testing.T) {
	t.Parallel()
	for field, passes := range map[string]bool{
		`"min_p":0.05`: true, `"repetition_penalty":1.1`: true, `"mirostat":2`: true, `"ignore_eos":true`: true, `"transforms":["middle-out"]`: true, `"x":{"y":["z"]}`: true,
		`"documents":[{"title":"a","text":"b"}]`: true, `"thing_id":null`: true, `"security":"high"`: true,
		`"thing_id":"7"`: false, `"thingId":7`: false, `"imageUrl":"x"`: false, `"api_base":"x"`: false, `"x":"https://example.com"`: false, `"x":{"y":["https:\/\/example.com"]}`: false,
		`"x":{"type":"y"}`: false, `"x":[{"file":"y"}]`: false, `"enableSearch":true`: false, `"max_answer":7`: false, `"num_predict":7`: false, `"webhook":"x"`: false, `"route_model":"x"`: false,
	} {
		for _, f := range []models.Format{models.OpenAIChat, models.OpenAIResponses, models.AnthropicMessages} {
			for place, body := range map[string]string{
				"top": base(f, "", field), "part": base(f, `{"type":"`+map[bool]string{true: "input_text", false: "text"}[f == models.OpenAIResponses]+`",`+field+`}`, ""),
			} {
				if _, err := Parse(f, []byte(body)); (err == nil) != passes {
					t.Errorf("%s, %s: %s: %v", f, place, field, err)
				}
			}
		}
	}
}

// TestNamesBesideAToolOfTheProvider has names that are open beside such a tool.
func TestNamesBesideAToolOfTheProvider(t *testing.T) {
	t.Parallel()
	both := []models.Need{models.ProviderTools, models.ProviderState}
	for field, want := range map[string][]models.Need{`"new_id":"x"`: both[:1], `"new":{"file_id":"x"}`: both} {
		if got := needs(t, models.OpenAIResponses, base(models.OpenAIResponses, "", `"tools":[{"type":"web_search",`+field+`}]`)); !slices.Equal(got, want) {
			t.Errorf("%s needs %v, want %v", field, got, want)
		}
	}
	refused(t, models.OpenAIChat, base(models.OpenAIChat, "", `"chat_template_kwargs":{"chat_template":"{{ x }}"}`), Invalid, "unknown")
	refused(t, models.OpenAIResponses, base(models.OpenAIResponses, "", `"tools":[{"type":"web_search","File_Id":"x"}]`), Invalid, "case")
}

func TestUnknownTypesAreRefused(t *testing.T) {
	t.Parallel()
	for _, f := range []models.Format{models.OpenAIChat, models.OpenAIResponses, models.AnthropicMessages} {
		refused(t, f, base(f, `{"type":"hologram"}`, ""), Invalid, "hologram")
		refused(t, f, base(f, `{"type":7}`, ""), Invalid, "string")
		refused(t, f, base(f, `{"type":"Text"}`, ""), Invalid, "Text")
		refused(t, f, base(f, "", `"tools":[{"type":"teleport_20260101"}]`), Invalid, "teleport")
	}
}

func TestFieldsCanBePrinted(t *testing.T) {
	t.Parallel()
	raw, err := json.Marshal(Fields())
	if err != nil || len(Fields()) < 300 || !strings.Contains(string(raw), "previous_response_id") {
		t.Errorf("%d rows, %v", len(Fields()), err)
	}
	for i, field := range Fields() {
		if len(field.Needs) > 0 {
			field.Needs[0] = "changed"
			if Fields()[i].Needs[0] == "changed" {
				t.Fatal("the rows can be changed")
			}
		}
	}
}

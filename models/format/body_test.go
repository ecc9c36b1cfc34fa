package format

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"

	"clove.run/clove/models"
)

func TestBody(t *testing.T) {
	t.Parallel()
	state := []models.Need{models.ProviderState}
	for _, row := range []struct {
		f       models.Format
		body    string
		granted []models.Need
		out     int64
		want    string
	}{
		{models.OpenAIChat, `{"model":"m","messages":[]}`, nil, 50, `{"model":"M","messages":[],"max_completion_tokens":50}`},
		{models.OpenAIChat, `{"max_tokens" : 90,"messages":[ 1.50 ],"model":"m"}`, nil, 50, `{"max_tokens":50,"messages":[ 1.50 ],"model":"M"}`},
		{models.OpenAIChat, `{"max_completion_t\u006fkens":90,"max_tokens":null,"model":"m"}`, nil, 50, `{"max_completion_t\u006fkens":50,"model":"M"}`},
		{models.OpenAIChat, `{"max_tokens":90,"model":"m"}`, nil, 90, `{"max_tokens":90,"model":"M"}`},
		{models.OpenAIChat, `{"max_tokens":90,"model":"m"}`, nil, 0, `{"max_tokens":90,"model":"M"}`},
		{models.OpenAIResponses, `{"model":"m","max_output_tokens":90,"input":"a","store":false}`, nil, 50, `{"model":"M","max_output_tokens":50,"input":"a","store":false}`},
		{models.AnthropicMessages, `{"model":"m","max_tokens":90,"messages":[],"metadata":{"max_tokens":90}}`, nil, 50, `{"model":"M","max_tokens":50,"messages":[],"metadata":{"max_tokens":90}}`},
		{models.OpenAIChat, `{"model":"m","messages":[]}`, nil, 0, `{"model":"M","messages":[]}`},
		{models.OpenAIChat, `{"messages":[],"max_tokens":7,"model":"m"}`, nil, 50, `{"messages":[],"max_tokens":7,"model":"M"}`},
		{models.OpenAIChat, `{"messages":[],"max_tokens":null,"model":"m"}`, nil, 50, `{"messages":[],"model":"M","max_completion_tokens":50}`},
		{models.OpenAIChat, ` { "model" : "m" , "messages" : [ 1.50, 1e9, 12345678901234567890 ] , "seed" : 1.0 } `, nil, 0, `{"model":"M","messages":[ 1.50, 1e9, 12345678901234567890 ],"seed":1.0}`},
		{models.OpenAIChat, `{"model":"m","stream":true}`, nil, 0, `{"model":"M","stream":true,"stream_options":{"include_usage":true}}`},
		{models.OpenAIChat, `{"model":"m","stream":true,"stream_options":null}`, nil, 0, `{"model":"M","stream":true,"stream_options":{"include_usage":true}}`},
		{models.OpenAIChat, `{"model":"m","stream":true,"stream_options":{"include_usage":false,"include_obfuscation":false}}`, nil, 0, `{"model":"M","stream":true,"stream_options":{"include_obfuscation":false,"include_usage":true}}`},
		{models.OpenAIChat, `{"model":"m","stream":false,"stream_options":{"include_usage":false}}`, nil, 0, `{"model":"M","stream":false,"stream_options":{"include_usage":false}}`},
		{models.OpenAIChat, `{"\u006dodel":"m","us\u0065r":"\u00e9"}`, nil, 0, `{"model":"M","us\u0065r":"\u00e9"}`},
		{models.OpenAIResponses, `{"model":"m","input":"a"}`, nil, 50, `{"model":"M","input":"a","max_output_tokens":50,"store":false}`},
		{models.OpenAIResponses, `{"model":"m","store":null,"stream":true}`, nil, 0, `{"model":"M","stream":true,"store":false}`},
		{models.OpenAIResponses, `{"model":"m","input":"a"}`, state, 0, `{"model":"M","input":"a"}`},
		{models.OpenAIResponses, `{"model":"m","store":null}`, state, 0, `{"model":"M","store":null}`},
		{models.OpenAIResponses, `{"model":"m","store":true}`, state, 0, `{"model":"M","store":true}`},
		{models.OpenAIResponses, `{"model":"m","store":false}`, nil, 0, `{"model":"M","store":false}`},
		{models.AnthropicMessages, `{"model":"m","messages":[],"stream":true}`, nil, 50, `{"model":"M","messages":[],"stream":true,"max_tokens":50}`},
		{models.AnthropicMessages, `{"model":"m","max_tokens":0}`, nil, 50, `{"model":"M","max_tokens":0}`},
		{models.AnthropicCount, `{"model":"m","messages":[]}`, nil, 50, `{"model":"M","messages":[]}`},
	} {
		r := mustParse(t, row.f, row.body)
		r.Granted = row.granted
		got, err := r.Body("M", row.out)
		if err != nil || string(got) != row.want {
			t.Errorf("%s %s, %d:\n got %s, %v\nwant %s", row.f, row.body, row.out, got, err, row.want)
		}
	}
}

func TestBodyQuotesTheModel(t *testing.T) {
	t.Parallel()
	r := mustParse(t, models.OpenAIChat, smallest)
	const name = "a\"},{\\ b\n</x>"
	body, err := r.Body(name, 0)
	var decoded struct{ Model string }
	if err != nil || json.Unmarshal(body, &decoded) != nil || decoded.Model != name {
		t.Errorf("%s, %v", body, err)
	}
	if _, err := new(Request).Body("m", 0); err == nil {
		t.Error("a request without a body has one")
	}
}

// sameMeaning checks that a body says what another said, but for the fields that Body
// writes.
func sameMeaning(t *testing.T, f models.Format, before, after []byte) {
	t.Helper()
	a, b := decodeAll(t, before), decodeAll(t, after)
	for _, name := range []string{"model", "stream_options", "store", "max_tokens", "max_completion_tokens", "max_output_tokens"} {
		delete(a, name)
		delete(b, name)
	}
	if !reflect.DeepEqual(a, b) {
		t.Errorf("%s:\nbefore %s\n after %s", f, before, after)
	}
}

func decodeAll(t *testing.T, body []byte) map[string]any {
	t.Helper()
	decoder := json.NewDecoder(strings.NewReader(string(body)))
	decoder.UseNumber()
	var all map[string]any
	if err := decoder.Decode(&all); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return all
}

func TestBodiesOfClientsKeepTheirMeaning(t *testing.T) {
	t.Parallel()
	for _, row := range bodies {
		r := mustParse(t, row.format, row.body)
		body, err := r.Body("provider's", 99)
		if err != nil {
			t.Fatal(err)
		}
		sameMeaning(t, row.format, []byte(row.body), body)
		again := mustParse(t, row.format, string(body))
		if want := 99 * min(1, int64(len(r.limits()))); again.Model != "provider's" || row.out == 0 && again.Out != want || row.out > 0 && again.Out != min(row.out, want) || again.N != r.N || again.Stream != r.Stream {
			t.Errorf("%s: %+v", row.name, again)
		}
	}
}

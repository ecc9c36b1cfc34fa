package format

import (
	"encoding/json"
	"strings"
	"testing"

	"clove.run/clove/models"
)

const smallest = `{"model":"m","messages":[]}`

func TestBodiesThatTwoReadersCouldReadDifferently(t *testing.T) {
	t.Parallel()
	for _, row := range []struct{ body, control, message string }{
		{`{"model":"m","messages":[],"model":"n"}`, smallest, "twice"},
		{`{"model":"m","messages":[],"Model":"n"}`, smallest, "case"},
		{`{"model":"m","messages":[],"\u006dodel":"n"}`, smallest, "twice"},
		{`{"model":"m","messages":[],"ſtore":true}`, `{"model":"m","messages":[],"store":false}`, "case"},
		{`{"model":"m","messages":[],"x":{"a":1,"a":2}}`, `{"model":"m","messages":[],"x":{"a":1,"b":2}}`, "twice"},
		{`{"model":"m","messages":[],"x":{"a":1,"A":2}}`, `{"model":"m","messages":[],"x":{"a":1,"b":2}}`, "case"},
		{`{"model":"m","messages":[],"x":1,"X":2}`, `{"model":"m","messages":[],"x":1,"y":2}`, "case"},
		{`{"model":"m","messages":[{"role":"user","content":"a","Content":"b"}]}`, `{"model":"m","messages":[{"role":"user","content":"a"}]}`, "case"},
		{"{\"model\":\"m\",\"messages\":[\"\xff\"]}", `{"model":"m","messages":["ü"]}`, "UTF-8"},
		{"\ufeff" + smallest, smallest, "JSON"},
		{smallest + `{}`, smallest + "\n", "JSON"},
		{smallest[:len(smallest)-1], smallest, "ends"},
		{`{"model":"m","messages":[],}`, smallest, "JSON"},
		{`{"model":"m","messages":[01]}`, `{"model":"m","messages":[0.1e-5]}`, "JSON"},
		{`{"model":"m","messages":[1.]}`, `{"model":"m","messages":[-0]}`, "JSON"},
		{`{"model":"m","messages":[+1]}`, `{"model":"m","messages":[1E+2]}`, "JSON"},
		{`{"model":"m","messages":[NaN]}`, `{"model":"m","messages":[null]}`, "JSON"},
		{`{"model":"m","messages":['a']}`, `{"model":"m","messages":["\/\b\f\n\r\t\"\\"]}`, "JSON"},
		{`{"model":"m","messages":["\x41"]}`, `{"model":"m","messages":["\u0041"]}`, "JSON"},
		{`{"model":"m","messages":["\u00g1"]}`, `{"model":"m","messages":["\ud800"]}`, "JSON"},
		{"{\"model\":\"m\",\"messages\":[\"a\nb\"]}", `{"model":"m","messages":["a\nb"]}`, "JSON"},
		{`{"model":"m","messages":[]}//`, smallest, "JSON"},
		{`{"model":"m","messages":[` + strings.Repeat("9", maxNumber+1) + `]}`, `{"model":"m","messages":[` + strings.Repeat("9", maxNumber) + `]}`, "digits"},
		{`[]`, smallest, "object"},
		{``, smallest, "ends"},
		{nested(MaxDepth + 1), nested(MaxDepth), "deeper"},
		{values(MaxValues), values(MaxValues / 2), "values"},
	} {
		if _, err := Parse(models.OpenAIChat, []byte(row.control)); err != nil {
			t.Errorf("the control %.80q is refused: %v", row.control, err)
		}
		refused(t, models.OpenAIChat, row.body, Invalid, row.message)
	}
}

// nested has arrays as values of an unknown field, depth levels with the body's own.
func nested(depth int) string {
	return `{"model":"m","messages":[],"x":` + strings.Repeat("[", depth-1) + strings.Repeat("]", depth-1) + `}`
}

func values(n int) string {
	return `{"model":"m","messages":[` + strings.Repeat("0,", n-1) + `0]}`
}

func refused(t *testing.T, f models.Format, body string, cause Cause, message string) {
	t.Helper()
	_, err := Parse(f, []byte(body))
	refusal, ok := err.(*Refusal)
	if !ok || refusal.Cause != cause || !strings.Contains(refusal.Error(), message) {
		t.Errorf("%s %.120q: %v, want %s with %q", f, body, err, cause, message)
	}
}

func TestTheLargestBody(t *testing.T) {
	t.Parallel()
	head := `{"model":"m","messages":[{"role":"user","content":"`
	body := head + strings.Repeat("x", MaxBody-len(head)-len(`"}]}`)) + `"}]}`
	if _, err := Parse(models.OpenAIChat, []byte(body)); err != nil {
		t.Error(err)
	}
	refused(t, models.OpenAIChat, body+" ", TooLarge, "bytes")
}

func TestManyNamesInOneObject(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString(`{"model":"m","messages":[],"logit_bias":{"0":1`)
	for i := 1; i < 100; i++ {
		b.WriteString(`,"` + strings.Repeat("1", i) + `":1`)
	}
	body := b.String()
	if _, err := Parse(models.OpenAIChat, []byte(body+`}}`)); err != nil {
		t.Error(err)
	}
	refused(t, models.OpenAIChat, body+`,"1111":2}}`, Invalid, "twice")
	refused(t, models.OpenAIChat, body+`,"\u0031111":2}}`, Invalid, "twice")
}

func TestFoldAgreesWithGosDecoders(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"store", "STORE", "ſtore", "StOrE", "stores", "ﬅore", "K", "K", "k", "ß", "ẞ", "É", "é", "İ", "i"} {
		for _, other := range []string{"store", "k", "ß", "é", "i", "ı"} {
			if same := fold(name) == fold(other); same != strings.EqualFold(name, other) {
				t.Errorf("%q and %q: %t", name, other, same)
			}
		}
	}
	var decoded struct{ Store bool }
	if json.Unmarshal([]byte(`{"ſtore":true}`), &decoded); !decoded.Store {
		t.Error("Go's decoder no longer takes U+017F for an s: fold may be simpler")
	}
}

func TestPathsArePlain(t *testing.T) {
	t.Parallel()
	_, err := Parse(models.OpenAIChat, []byte(`{"model":"m","messages":[],"the\nid\u001b[2J":1}`))
	refusal, ok := err.(*Refusal)
	if want := `"the\nid\x1b[2J"`; !ok || refusal.Param != want {
		t.Errorf("%+v, want %s", err, want)
	}
}

func TestPathNamesTheField(t *testing.T) {
	t.Parallel()
	_, err := Parse(models.OpenAIChat, []byte(`{"model":"m","messages":[{"role":"user","content":"a"},{"role":"user","content":[{"type":"text","text":"b"},{"type":"hologram"}]}]}`))
	refusal, ok := err.(*Refusal)
	if want := "messages[1].content[1].type"; !ok || refusal.Param != want {
		t.Errorf("%+v, want %s", err, want)
	}
}

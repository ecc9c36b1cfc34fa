package agent

import (
	"bytes"
	"encoding/json"
	"slices"
	"testing"

	"pgregory.net/rapid"
)

// Text of any bytes comes back from JSON as it was, and text that is UTF-8 has the form that
// encoding/json gives it. The control is a string, whose bytes encoding/json replaces.
func TestRawStringsKeepTheirBytes(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		all := RawStrings(rapid.SliceOfN(rapid.OneOf(rapid.String(), rapid.Custom(func(t *rapid.T) string { return string(rapid.SliceOf(rapid.Byte()).Draw(t, "bytes")) })), 1, 4).Draw(t, "texts"))
		text, err := json.Marshal(all)
		if err != nil || !json.Valid(text) {
			t.Fatal(err)
		}
		var back RawStrings
		if err := json.Unmarshal(text, &back); err != nil || !slices.Equal(back, all) {
			t.Fatalf("%q became %s and %q, %v", []string(all), text, []string(back), err)
		}
	})
	for text, want := range map[RawString]string{"a\xffb": `"a\udcffb"`, "\x80": `"\udc80"`, "ä": `"ä"`, "\U0001f600\xfe": `"😀\udcfe"`} {
		if got, err := json.Marshal(text); err != nil || string(got) != want {
			t.Errorf("%q: %s, %v", string(text), got, err)
		}
	}
	if got, _ := json.Marshal("a\xffb"); !bytes.Contains(got, []byte(`\ufffd`)) {
		t.Errorf("control: %s", got)
	}
}

// An unpaired surrogate that stands for no byte is an error, and never another text.
func TestSurrogatesThatAreNoBytes(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{`"\ud83d\ude00"`: "\U0001f600", `"\\udcff"`: `\udcff`, `"\udcff"`: "\xff", `"\uDC80x"`: "\x80x"} {
		var got RawString
		if err := json.Unmarshal([]byte(text), &got); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", text, string(got), err)
		}
	}
	for _, text := range []string{`"\ud800"`, `"\udc7f"`, `"\udc00"`, `"\udd00"`, `"\udfff"`, `"\ud83dx"`, `["\ud800"]`} {
		var one RawString
		var many RawStrings
		if json.Unmarshal([]byte(text), &one) == nil || json.Unmarshal([]byte(text), &many) == nil {
			t.Errorf("%s is accepted", text)
		}
	}
}

package api

import (
	"encoding/json"
	"testing"
)

// A byte that is not UTF-8 arrives where a text may have one, and is refused elsewhere: it is
// never replaced. The controls are the texts that may have one, and a whole surrogate pair.
func TestBytesAreNotReplaced(t *testing.T) {
	t.Parallel()
	for text, ok := range map[string]bool{
		`{"run":"a","exec":{"command":["rm","bad\udcff"]}}`:              true,
		`{"run":"\ud83d\ude00","exec":{"command":["rm"]}}`:               true,
		`{"run":"a\udcff","exec":{"command":["rm"]}}`:                    false,
		`{"run":"a","exec":{"command":["\udcff"],"dir":"/\uDCFF"}}`:      false,
		`{"run":"a","exec":{"command":["rm"],"user":{"name":"\ud83d"}}}`: false,
	} {
		var params ExecParams
		if err := DecodeParams(json.RawMessage(text), &params); (err == nil) != ok {
			t.Errorf("%s: %+v, %v", text, params, err)
		}
	}
}

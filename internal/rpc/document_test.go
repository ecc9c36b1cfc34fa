package rpc

import (
	"fmt"
	"strings"
	"testing"
)

// examined are a call as most are, and lines that are long.
var examined = map[string]string{
	"call":  `{"jsonrpc":"2.0","id":17,"method":"budget.reserve","params":{"amounts":{"tokens":100,"cost":2},"key":"k-17","ttl":"10m"}}`,
	"batch": "[" + strings.Repeat(`{"jsonrpc":"2.0","id":1,"method":"run.get","params":{"run":"worker"}},`, 99) + `{"jsonrpc":"2.0","method":"note"}]`,
	"text":  `{"jsonrpc":"2.0","id":1,"method":"policy.put","params":{"text":"` + strings.Repeat(`a line of it\n`, 5000) + `"}}`,
}

func BenchmarkExamine(b *testing.B) {
	for name, text := range examined {
		b.Run(name, func(b *testing.B) {
			b.SetBytes(int64(len(text)))
			b.ReportAllocs()
			for b.Loop() {
				if _, err := Examine([]byte(text)); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func TestWhatIsExamined(t *testing.T) {
	t.Parallel()
	deep := func(depth int) string { return strings.Repeat("[", depth) + strings.Repeat("]", depth) }
	for text, want := range map[string]string{
		`{}`:                            "0 elements",
		" [1, {\"a\":[2,3]}, null]\r\n": "3 elements",
		`[[],[]]`:                       "2 elements",
		`{"a":"\ud800"}`:                "0 elements",
		`[1e999]`:                       "1 elements",
		deep(maxDepth):                  "1 elements",
		deep(maxDepth + 1):              "it nests more than 64 deep",
		``:                              "it is not JSON",
		`{"a":1`:                        "it is not JSON",
		`{"a":1,}`:                      "it is not JSON",
		`{"a" 1}`:                       "it is not JSON",
		`[01]`:                          "it is not JSON",
		`7`:                             "it is neither an object nor an array",
		`"a"`:                           "it is neither an object nor an array",
		`{} {}`:                         "there is something behind it",
		"{\"a\":\"\xff\"}":              "it is not UTF-8",
		`{"a":1,"\u0061":2}`:            `the key "a" is there twice`,
		`{"a":1,"A":2}`:                 `the key "A" is there twice`,
		`[[[{"a":1,"A":2}]]]`:           "1 elements",
		`[[[{"a/b":1,"a/b":2}]]]`:       `the key "a/b" is there twice`,
	} {
		n, err := Examine([]byte(text))
		got := fmt.Sprintf("%d elements", n)
		if err != nil {
			got = err.Error()
		}
		if got != want {
			t.Errorf("%.40s: %s, not %s", text, got, want)
		}
	}
}

package upstream

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
	"clove.run/clove/models/usage"
	"clove.run/clove/secrets/redact"
)

// tooLong are answers of 1 200 tokens and more, in each format, whose provider does not keep to
// a maximum, as events of a few tokens, as one event, and as a document.
func tooLong() map[string]struct {
	format models.Format
	text   string
} {
	type answer = struct {
		format models.Format
		text   string
	}
	all := map[string]answer{}
	for format, parts := range map[models.Format][3]string{
		models.OpenAIChat:        {`{"choices":[{"delta":{"content":"`, `{"choices":[{"message":{"content":"`, `"}}]}`},
		models.OpenAIResponses:   {`{"type":"response.output_text.delta","delta":"`, `{"output":[{"content":[{"text":"`, `"}`},
		models.AnthropicMessages: {`{"type":"content_block_delta","delta":{"text":"`, `{"content":[{"text":"`, `"}}`},
	} {
		text := strings.Repeat(`abc \u4e2d\n`, 450)
		all[string(format)+", events"] = answer{format, strings.Repeat("data: "+parts[0]+`abc \u4e2d\n`+parts[2]+"\n\n", 450)}
		all[string(format)+", one event"] = answer{format, "data: " + parts[0] + text + parts[2] + "\n\n"}
		all[string(format)+", a document"] = answer{format, parts[1] + text}
	}
	return all
}

// An answer is cut at its reservation, and by no more than one token beyond, however its bytes
// come. The agent gets the same of it in each split. The control: the whole is far longer.
func TestAnAnswerIsCutAtItsReservation(t *testing.T) {
	t.Parallel()
	const most = 300
	for name, answer := range tooLong() {
		whole := usage.New(answer.format, isStream([]byte(answer.text)))
		io.WriteString(whole, answer.text)
		if n := whole.Streamed(); n < 4*most {
			t.Errorf("control: %s: %d tokens", name, n)
		}
		var want []byte
		for _, split := range []int{1, 2, 3, 5, 7, 64, 100, 1000, 4096, 32 << 10, len(answer.text)} {
			for first := 1; first <= min(split, 7); first++ { // the split begins anywhere
				var out bytes.Buffer
				e := exchange{call: link.Call{Format: answer.format, MostOut: most}, out: link.Answer{W: &out}, keyless: newRedactor(redact.New(testKey)), more: func() int64 { return 0 }}
				rest, n, err := answer.text, first, error(nil)
				for ; len(rest) > 0 && err == nil; n = split {
					n = min(n, len(rest))
					err = e.take([]byte(rest[:n]))
					rest = rest[n:]
				}
				if n := e.meter.Streamed(); err == nil || n <= most || n > most+1 {
					t.Fatalf("%s, in parts of %d behind %d: %d tokens, %v", name, split, first, n, err)
				}
				if want == nil {
					want = out.Bytes()
				}
				if !bytes.Equal(out.Bytes(), want) {
					t.Fatalf("%s, in parts of %d behind %d: %d bytes pass, not %d", name, split, first, out.Len(), len(want))
				}
			}
		}
	}
}

// What is reserved later is used, and then nothing more is asked of control that it refuses. A
// control that is gone reserves nothing.
func TestALongerAnswerHasMoreReserved(t *testing.T) {
	t.Parallel()
	text := fmt.Sprintf(`{"choices":[{"message":{"content":"%s"}}],"usage":{"prompt_tokens":5,"completion_tokens":100}}`, strings.Repeat("abcd ", 100)) // 167 tokens by the estimate
	for name, row := range map[string]struct {
		most, more int64
		asked      int64
		whole      bool
	}{
		"enough at first":  {200, 0, 0, true},
		"enough later":     {100, 200, 1, true},
		"not enough later": {100, 120, 2, false},
		"no more":          {100, 0, 1, false},
		"less":             {100, 50, 1, false},
		"nothing reserved": {0, 0, 0, true},
	} {
		r := newRig(t, func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, text) }, nil)
		r.more.Store(row.more)
		a, d := r.call(link.Call{Format: models.OpenAIChat, MostOut: row.most}, "{}")
		bound := max(row.most, row.more) + 1
		if (a.err == nil) != row.whole || d.Complete != row.whole || row.whole && (a.text != text || d.Usage.Out != 100) || !row.whole && (a.text != "" || d.Usage.Out > bound || d.Usage.Out < row.most) {
			t.Errorf("%s: %+v, %+v", name, a, d)
		}
		if n := r.asked.Load(); n != row.asked && name != "not enough later" || n > row.asked {
			t.Errorf("%s: %d times it asked for more", name, n)
		}
	}
	begun, goOn := make(chan bool, 1), make(chan bool)
	r := newRig(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, text[:20])
		http.NewResponseController(w).Flush()
		begun <- true
		<-goOn
		io.WriteString(w, text[20:])
	}, nil)
	stream := r.begin(link.Call{Format: models.OpenAIChat, MostOut: 100}, "{}")
	<-begun
	r.conn.Close()
	close(goOn)
	if a := receive(stream); a.err == nil || !strings.Contains(a.err.Error(), "longer than its budget") {
		t.Errorf("%+v", a)
	}
	if err := <-r.served; err != nil {
		t.Error(err)
	}
}

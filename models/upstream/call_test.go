package upstream

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/pem"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"golang.org/x/sys/unix"

	"clove.run/clove/internal/passfd"
	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

const chatAnswer = `{"model":"m-1","service_tier":"priority","choices":[{"message":{"content":"Hello!"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":3,"total_tokens":10}}`

func TestACallIsPassedOnAndMeasured(t *testing.T) {
	t.Parallel()
	seen := make(chan *http.Request, 1)
	body := make(chan string, 1)
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		text, _ := io.ReadAll(q.Body)
		seen <- q
		body <- string(text)
		w.Header().Set("X-Request-Id", "req_7")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("Content-Type", "application/json")
		io.WriteString(w, chatAnswer)
	}, nil)
	a, d := r.call(link.Call{Format: models.OpenAIChat, In: 50}, `{"model":"m"}`)
	if a.err != nil || a.head != (link.Head{Status: 200, Type: "application/json", ID: "req_7"}) || a.text != chatAnswer {
		t.Errorf("%+v", a)
	}
	q := <-seen
	if got := <-body; got != `{"model":"m"}` || q.URL.Path != "/openai-chat" || q.Header.Get("Authorization") != "Bearer "+testKey || q.UserAgent() != "clove" || q.Host != "provider.test" {
		t.Errorf("%q, %+v", got, q)
	}
	if d.Status != 200 || d.Usage != (models.Usage{In: 7, Out: 3}) || !d.Reported || !d.Complete || !d.Sent || d.Model != "m-1" || fmt.Sprint(d.Tiers) != "[service_tier=priority]" || d.Error != "" || d.First <= 0 || d.Total < d.First {
		t.Errorf("%+v", d)
	}
}

// A copy has the body and what of the answer was passed on, without the key, and ends before
// the call is reported. One that nobody reads any more changes nothing.
func TestACopyHasWhatWasSaid(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		fmt.Fprintf(w, `{"model":"m","echo":%q}`, q.Header.Get("Authorization"))
	}, nil)
	for _, read := range []bool{true, false} {
		own, theirs, err := passfd.Pair(unix.SOCK_STREAM | unix.SOCK_NONBLOCK)
		if err != nil {
			t.Fatal(err)
		}
		defer own.Close()
		if !read {
			own.Close()
		}
		stream := r.begin(link.Call{Format: models.OpenAIChat}, `{"model":"m"}`, theirs)
		const want = `{"model":"m","echo":"Bearer [key]"}`
		if a := receive(stream); a.err != nil || a.text != want {
			t.Errorf("%+v", a)
		}
		r.ended()
		if !read {
			continue
		}
		body, err := link.ReceiveBody(own, func(int64) bool { return true })
		rest, rerr := io.ReadAll(own)
		if err != nil || rerr != nil || string(body) != `{"model":"m"}` || string(rest) != want {
			t.Errorf("%q, %q, %v, %v", body, rest, err, rerr)
		}
	}
}

func TestAnthropicHasHeadersOfItsOwn(t *testing.T) {
	t.Parallel()
	seen := make(chan http.Header, 2)
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) { seen <- q.Header }, nil)
	r.call(link.Call{Format: models.AnthropicMessages, Betas: []string{"pdfs-2024-09-25", "effort-2025-11-24"}}, "{}")
	h := <-seen
	if h.Get("X-Api-Key") != testKey || h.Get("Anthropic-Version") != anthropicVersion || h.Get("Anthropic-Beta") != "pdfs-2024-09-25,effort-2025-11-24" || h.Get("Authorization") != "" {
		t.Errorf("%v", h)
	}
	r.call(link.Call{Format: models.OpenAIChat, Betas: []string{"pdfs-2024-09-25"}}, "{}")
	if h := <-seen; h.Get("Anthropic-Beta") != "" || h.Get("X-Api-Key") != "" {
		t.Errorf("%v", h)
	}
}

// Calls share connections. Each stream has the answer to its own body.
func TestAnswersAreNotMixed(t *testing.T) {
	t.Parallel()
	digest := func(text string) string {
		sum := sha256.Sum256([]byte(text))
		return hex.EncodeToString(sum[:])
	}
	r := newRig(t, func(w http.ResponseWriter, q *http.Request) {
		text, _ := io.ReadAll(q.Body)
		io.WriteString(w, digest(string(text)))
	}, nil)
	for range 4 {
		var group sync.WaitGroup
		for i := range 24 {
			body := strings.Repeat(fmt.Sprint(i), 1000)
			stream := r.begin(link.Call{Format: models.OpenAIChat}, body)
			group.Go(func() {
				if a := receive(stream); a.text != digest(body) {
					t.Errorf("%+v", a)
				}
			})
		}
		group.Wait()
	}
	if n := r.dials.Load(); n >= 4*24 {
		t.Errorf("control: %d connections for %d calls, so none was shared", n, 4*24)
	}
}

// Only an authority that the setup names makes a provider believed.
func TestProvidersProveTheirNames(t *testing.T) {
	t.Parallel()
	web := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { io.WriteString(w, chatAnswer) }))
	web.Config.ErrorLog = quiet
	t.Cleanup(web.Close)
	setup := func(host string, roots []byte) link.Setup {
		p := link.Provider{Endpoints: map[models.Format]string{models.OpenAIChat: "https://" + host + "/"}, Key: testKey, First: soon, Pause: soon, Total: soon}
		return link.Setup{Providers: map[string]link.Provider{"p": p}, Roots: roots}
	}
	own := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: web.Certificate().Raw})
	address := web.Listener.Addr().String()
	for name, row := range map[string]struct {
		setup link.Setup
		sent  bool
	}{
		"control":        {setup("example.com", own), true},
		"another name":   {setup("provider.test", own), false},
		"no authorities": {setup("example.com", nil), false},
	} {
		a, d := startRig(t, row.setup, address).call(link.Call{Format: models.OpenAIChat, In: 9}, "{}")
		if d.Sent != row.sent || (a.err == nil) != row.sent || !row.sent && d.Usage != (models.Usage{}) {
			t.Errorf("%s: %+v, %+v", name, a, d)
		}
	}
}

func TestCallsThatCannotBeMade(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(http.ResponseWriter, *http.Request) { t.Error("the provider was asked") }, nil)
	if a, d := r.call(link.Call{Provider: "other", Format: models.OpenAIChat}, "{}"); a.err == nil || d.Sent || d.Unreached || !strings.Contains(d.Error, `no provider "other"`) {
		t.Errorf("%+v, %+v", a, d)
	}
	stream := r.begin(link.Call{Format: models.OpenAIChat}, "")
	stream.Close() // behind a whole body of no bytes
	if d := r.ended(); d.Status != 0 {
		t.Errorf("%+v", d)
	}
	nobody := startRig(t, link.Setup{Providers: map[string]link.Provider{"p": {Endpoints: map[models.Format]string{models.OpenAIChat: "http://provider.test/"}, First: soon, Pause: soon, Total: soon}}}, "127.0.0.1:1")
	if a, d := nobody.call(link.Call{Format: models.OpenAIChat, In: 9}, "{}"); a.err == nil || d.Sent || !d.Unreached || d.Usage != (models.Usage{}) || d.Error != "the provider cannot be reached" {
		t.Errorf("%+v, %+v", a, d)
	}
}

func TestTheServerEndsWithControl(t *testing.T) {
	t.Parallel()
	r := newRig(t, func(http.ResponseWriter, *http.Request) {}, nil)
	r.call(link.Call{Format: models.OpenAIChat}, "{}") // so it serves
	r.conn.Close()
	if err := <-r.served; err != nil {
		t.Error(err)
	}
}

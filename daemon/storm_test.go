package daemon

import (
	"math/rand/v2"
	"net"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// stormLines are lines that a hostile member of the group may send: requests, and lines that
// are nearly requests.
var stormLines = []string{
	`{"jsonrpc":"2.0","method":"request.cancel","params":true}`,
	`{"jsonrpc":"2.1","method":"run.list"}`,
	`{"jsonrpc":"2.0","method":"request.cancel","params":{"id":1}}`,
	`{"jsonrpc":"2.0","method":"run.list","auth":"root"}`,
	`{"jsonrpc":"2.0","method":5}`,
	`{"jsonrpc":"2.0","method":"run.list","params":"x"}`,
	`{"method":"run.list"}`,
	`{"jsonrpc":"2.0"}`,
	`{"jsonrpc":"2.0","id":null,"method":"run.list","params":1}`,
	`{"jsonrpc":"2.0","id":{},"method":"run.list"}`,
	`[]`, `{}`, `[{}]`, `[5]`, `null`, `17`, ``,
	`[{"jsonrpc":"2.1","method":"run.list"},{"jsonrpc":"2.0","id":1,"method":"daemon.info"}]`,
	`[{"jsonrpc":"2.0","method":"request.cancel","params":[1]},{"jsonrpc":"2.0","method":"request.cancel","params":1}]`,
	`{"jsonrpc":"2.0","id":1,"method":"daemon.info"}`,
	`{"jsonrpc":"2.0","id":1,"method":"run.list","params":{"all":true}}`,
	`{"jsonrpc":"2.0","id":1,"result":{}}`,
	`{"jsonrpc":"2.0","id":1,"error":{"code":1,"message":"x"}}`,
	`{"jsonrpc":"2.0","id":2,"method":"event.follow","params":{"follow":true}}`,
	`{"jsonrpc":"2.0","id":3,"method":"run.attach","params":{"run":"no-such-run"}}`,
}

// gust is one connection with some lines in flight at the same time. The last line may be cut,
// and the connection ends in one of four ways.
func gust(t *testing.T, path string, random *rand.Rand) (lines int) {
	conn, err := net.Dial("unix", path)
	if err != nil {
		t.Error(err)
		return 0
	}
	defer conn.Close()
	var text strings.Builder
	for lines = 0; lines < 1+random.IntN(12); lines++ {
		text.WriteString(stormLines[random.IntN(len(stormLines))] + "\n")
	}
	sent := text.String()
	if random.IntN(3) == 0 {
		sent = sent[:random.IntN(len(sent))]
	}
	_, _ = conn.Write([]byte(sent)) // cloved may have closed already
	switch random.IntN(4) {
	case 0: // closed at once
	case 1:
		_ = conn.(*net.UnixConn).CloseWrite()
	case 2:
		_ = conn.(*net.UnixConn).CloseWrite()
		_ = conn.SetReadDeadline(time.Now().Add(time.Second))
		_, _ = conn.Read(make([]byte, 64))
	case 3:
		_ = conn.SetReadDeadline(time.Now().Add(time.Millisecond))
		_, _ = conn.Read(make([]byte, 4<<10))
	}
	return lines
}

// TestStormOfLines: whatever callers send, and however they leave, cloved answers the next
// one, and holds no more than before.
func TestStormOfLines(t *testing.T) {
	r := newRig(t, nil)
	r.serve()
	path := filepath.Join(r.dir, "s")
	most := 100_000
	if testing.Short() {
		most = 4_000
	}
	gusts := func(most int) {
		var all sync.WaitGroup
		for worker := range 8 {
			all.Go(func() {
				random := rand.New(rand.NewPCG(uint64(worker), uint64(most)))
				for sent := 0; sent < most/8 && !t.Failed(); {
					sent += gust(t, path, random)
				}
			})
		}
		all.Wait()
	}
	gusts(most / 10)
	before := measure(t)
	gusts(most)
	flat(t, usage{before.goroutines, before.descriptors})
	if after := measure(t); after.heapBytes > before.heapBytes+before.heapBytes/2 {
		t.Errorf("cloved held %+v after the first lines, and %+v after the last", before, after)
	}
	c := r.dial()
	say(t, c, ping)
	if m := hear(t, c); m.Error != nil {
		t.Errorf("%s", m.Error)
	}
}

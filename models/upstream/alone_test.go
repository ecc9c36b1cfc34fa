package upstream

import (
	"bufio"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/models"
	"clove.run/clove/models/link"
)

// When control is gone, a call comes to its end, and the journal has how, with the ticket. A
// call that still needs a connection fails, and is in the journal, too. Then the process ends.
func TestControlIsGone(t *testing.T) {
	t.Parallel()
	begun, goOn := make(chan struct{}, 1), make(chan struct{})
	file, err := os.OpenFile(filepath.Join(t.TempDir(), "journal"), os.O_RDWR|os.O_APPEND|os.O_CREATE, 0o600)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	r := newRigWith(t, func(w http.ResponseWriter, _ *http.Request) {
		io.WriteString(w, chatAnswer[:20])
		http.NewResponseController(w).Flush()
		begun <- struct{}{}
		<-goOn
		io.WriteString(w, chatAnswer[20:])
	}, nil, func(s *Server) { s.journal = newJournal(file) })
	stream := r.begin(link.Call{Format: models.OpenAIChat, In: 50, Ticket: json.RawMessage(`{"run":"r1"}`)}, `{"model":"m"}`)
	<-begun
	late := r.order(link.Call{Format: models.OpenAIChat, In: 60, Ticket: json.RawMessage(`{"run":"r2"}`)})
	r.conn.Close()
	r.send(late, `{}`)
	if a := receive(late); a.err == nil {
		t.Errorf("%+v", a)
	}
	select { // in the process that follows its return, the stream would end
	case err := <-r.served:
		close(goOn)
		t.Fatalf("it ended before the answer: %v", err)
	case <-time.After(100 * time.Millisecond):
	}
	close(goOn)
	if a := receive(stream); a.err != nil || a.text != chatAnswer {
		t.Errorf("%+v", a)
	}
	if err := <-r.served; err != nil {
		t.Fatal(err)
	}
	ended := readJournal(t, file.Name())
	if d := ended[`{"run":"r1"}`]; d.Usage != (models.Usage{In: 7, Out: 3}) || !d.Complete || !d.Reported {
		t.Errorf("%+v", d)
	}
	if d, found := ended[`{"run":"r2"}`]; !found || d.Sent || d.Usage != (models.Usage{}) || d.Error == "" {
		t.Errorf("%+v", d)
	}
}

// readJournal is how calls ended, by their tickets.
func readJournal(t *testing.T, path string) map[string]link.Done {
	t.Helper()
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	all := map[string]link.Done{}
	for lines := bufio.NewScanner(file); lines.Scan(); {
		var d link.Done
		if err := json.Unmarshal(lines.Bytes(), &d); err != nil {
			t.Fatal(err)
		}
		all[string(d.Ticket)] = d
	}
	return all
}

// What does not fit into the journal is left out: behind its limit the kernel would end the
// process, and with it the streams of all owners.
func TestAJournalIsBounded(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "journal")
	file, err := os.Create(path)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	j := newJournal(file)
	long := link.Done{Error: strings.Repeat("x", link.JournalBytes/3)}
	for range 5 {
		j.add(long)
	}
	j.add(link.Done{Number: 6})
	info, err := file.Stat()
	if err != nil || info.Size() > link.JournalBytes-headBytes || info.Size() < link.JournalBytes/2 {
		t.Errorf("%v, %v", info, err)
	}
	newJournal(nil).add(long) // a process that ends with control has none
}

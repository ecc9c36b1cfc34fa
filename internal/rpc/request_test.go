package rpc

import (
	"encoding/json"
	"io"
	"testing"
)

// A batch is read as a batch, in order, and a message that is not a request has a fault beside
// its known fields.
func TestBatchOfRequests(t *testing.T) {
	t.Parallel()
	caller, server := pair(t)
	go func() {
		caller.Deliver(true, Message{ID: []byte(`"a"`), Method: "run.get", Params: []byte(`{"run":"x"}`)}, Message{Method: "note"})
		io.WriteString(caller, `{"id":3,"jsonrpc":"2.0","Method":"run.get"}`+"\n")
	}()
	line, err := server.Line(MaxLine)
	if err != nil {
		t.Fatal(err)
	}
	if n, err := Examine(line); n != 2 || err != nil {
		t.Errorf("%d elements, %v", n, err)
	}
	got, batch := Requests(line)
	if !batch || len(got) != 2 || string(got[0].ID) != `"a"` || string(got[0].Params) != `{"run":"x"}` || got[0].Notification() || !got[1].Notification() || got[1].Method != "note" {
		t.Errorf("batch %v: %+v", batch, got)
	}
	if line, err = server.Line(MaxLine); err != nil {
		t.Fatal(err)
	}
	if got, batch = Requests(line); batch || len(got) != 1 || got[0].Fault == nil || got[0].Fault.Code != CodeRequest || string(got[0].ID) != "3" {
		t.Errorf("batch %v: %+v", batch, got)
	}
}

// Keys that encoding/json takes for one field are there twice; the controls are two fields for it.
func TestKeysThatGoFolds(t *testing.T) {
	t.Parallel()
	for text, twice := range map[string]bool{
		`{"params":{"signal":1,"ſignal":9}}`: true, `{"params":{"kind":1,"\u212aind":2}}`: true, `{"params":{"run":1,"RuN":2}}`: true, `{"params":{"ſ":1,"S":2}}`: true,
		`{"params":{"signal":1,"signals":9}}`: false, `{"params":{"i":1,"ı":2}}`: false, `{"params":{"ss":1,"ß":2}}`: false,
	} {
		var both struct{ Params map[string]int }
		if json.Unmarshal([]byte(text), &both) != nil || len(both.Params) != 2 {
			t.Fatalf("%s is no test", text)
		}
		if _, err := Examine([]byte(text)); (err != nil) != twice {
			t.Errorf("%s: %v", text, err)
		}
	}
	var p struct{ Signal int }
	if json.Unmarshal([]byte(`{"signal":1,"ſignal":9}`), &p); p.Signal != 9 {
		t.Errorf("control: Go does not fold it: %d", p.Signal)
	}
}

func FuzzRequests(f *testing.F) {
	f.Add([]byte(`[{"jsonrpc":"2.0","id":1,"method":"x","params":[]},5,null]`))
	f.Fuzz(func(t *testing.T, text []byte) {
		if n, err := Examine(text); err == nil {
			if requests, batch := Requests(text); batch && len(requests) != n || !batch && len(requests) != 1 {
				t.Errorf("%q: %d elements, %d requests", text, n, len(requests))
			}
		}
	})
}

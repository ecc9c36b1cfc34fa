package monitor

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"os"
	"testing"

	"golang.org/x/sys/unix"
)

func readJSON(t *testing.T, path string, into any) {
	t.Helper()
	text, err := os.ReadFile(path)
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	if err != nil {
		t.Fatal(err)
	}
}

// TestAnEndHasOneReading: if there are two, the status is unknown.
func TestAnEndHasOneReading(t *testing.T) {
	const pid, other = 40, 41
	first := func(code int) threadEnd { return threadEnd{pid, pid, exited(code), false} }
	thread := func(code int) threadEnd { return threadEnd{other, pid, exited(code), false} }
	last := func(e threadEnd) threadEnd { e.final = true; return e }
	foreign := threadEnd{pid + 2, pid + 2, exited(9), true}
	for name, row := range map[string]struct {
		told    []threadEnd
		lost    bool
		code    int
		unknown error
	}{
		"one thread":                       {told: []threadEnd{last(first(7))}, code: 7},
		"others go first":                  {told: []threadEnd{thread(0), last(first(7))}, code: 7},
		"all at once":                      {told: []threadEnd{first(7), last(thread(7))}, code: 7},
		"all at once, told in disorder":    {told: []threadEnd{last(thread(7)), first(7)}, code: 7},
		"the first goes first":             {told: []threadEnd{first(0), last(thread(7))}, unknown: errEndTwice},
		"another program":                  {told: []threadEnd{first(9), last(first(7))}, code: 7},
		"another program, the end unheard": {told: []threadEnd{first(9)}, unknown: errEndMissing},
		"nothing":                          {unknown: errEndMissing},
		"the first one unheard":            {told: []threadEnd{last(thread(7))}, unknown: errEndMissing},
		"another process":                  {told: []threadEnd{foreign}, unknown: errEndMissing},
		"the number comes again":           {told: []threadEnd{last(first(7)), last(first(8))}, code: 7},
		"something was lost":               {told: []threadEnd{last(first(7))}, lost: true, unknown: errEndLost},
	} {
		e := ends{lost: row.lost}
		for _, told := range row.told {
			e.take(pid, told)
		}
		if got, err := e.status(); !errors.Is(err, row.unknown) || err == nil && got != exited(row.code) {
			t.Errorf("%s: %#x, %v", name, got, err)
		}
	}
}

// TestAnAccountIsReadWhole: an incomplete message is ignored.
func TestAnAccountIsReadWhole(t *testing.T) {
	l := &listener{pid: 40, family: 31}
	account := make([]byte, atProcess+4)
	binary.NativeEndian.PutUint16(account[atType:], 31)
	binary.NativeEndian.PutUint32(account[atThread:], 41)
	binary.NativeEndian.PutUint32(account[atProcess:], 40)
	binary.NativeEndian.PutUint32(account[atStatus:], uint32(exited(7)))
	account[atFlags] = flagFinal | 2
	want := threadEnd{41, 40, exited(7), true}
	if got, ok := l.parse(account); !ok || got != want {
		t.Errorf("%+v, %t", got, ok)
	}
	for n := range account {
		if _, ok := l.parse(account[:n]); ok {
			t.Fatalf("%d bytes are an account", n)
		}
	}
	binary.NativeEndian.PutUint16(account[atType:], unix.NLMSG_ERROR)
	if _, ok := l.parse(account); ok {
		t.Error("another message is an account")
	}
}

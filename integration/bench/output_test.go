package main

import (
	"bytes"
	"testing"
	"time"
)

func TestTailKeepsTheEnd(t *testing.T) {
	var said tail
	for range 3 {
		if n, err := said.Write(bytes.Repeat([]byte("x"), tailBytes/2)); n != tailBytes/2 || err != nil {
			t.Fatalf("took %d bytes: %v", n, err)
		}
	}
	said.Write([]byte("end"))
	if len(said.text) != tailBytes || !bytes.HasSuffix(said.text, []byte("end")) {
		t.Errorf("%d bytes, the last ones %q", len(said.text), said.text[len(said.text)-5:])
	}
}

func TestMomentReadsDate(t *testing.T) {
	now := time.Now()
	at, err := moment([]byte(output(programDate[0], programDate[1:]...) + "\n"))
	if err != nil || at.Before(now) || at.After(time.Now()) {
		t.Errorf("%v: %v", at, err)
	}
	for _, text := range []string{"", "date: invalid option", "1.5"} {
		if _, err := moment([]byte(text)); err == nil {
			t.Errorf("%q was taken for a moment", text)
		}
	}
}

func TestOutputIsTheLastLineOrNothing(t *testing.T) {
	if got := output("printf", "a\\nb\\n"); got != "b" {
		t.Errorf("%q, not the last line", got)
	}
	if got := output("/nowhere/at-all"); got != "" {
		t.Errorf("%q of a program that is not there", got)
	}
}

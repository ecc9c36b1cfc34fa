package main

import (
	"bufio"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// On a terminal, characters of JSON that a terminal would act on are escaped; in a file it is
// unchanged.
func TestJSONOnATerminal(t *testing.T) {
	const hostile = "a\u009b31m\u202eb\x7f\u0085\U000e0041\x1b[2J é 漢 \U0001f600"
	file, err := os.Create(filepath.Join(t.TempDir(), "out"))
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if err := writeLine(file, hostile); err != nil {
		t.Fatal(err)
	}
	inFile, err := os.ReadFile(file.Name())
	if err != nil || !strings.Contains(string(inFile), "\u009b") || !strings.Contains(string(inFile), "\u202e") {
		t.Fatalf("the control: %q, %v", inFile, err)
	}
	master, slave := pseudoTerminal(t)
	if err := writeLine(slave, hostile); err != nil {
		t.Fatal(err)
	}
	line, err := bufio.NewReader(master).ReadString('\n')
	if err != nil {
		t.Fatal(err)
	}
	line = strings.TrimRight(line, "\r\n")
	if strings.ContainsFunc(line, unprintable) || !strings.Contains(line, `\u009b`) || !strings.Contains(line, `\udb40\udc41`) || !strings.Contains(line, "é 漢 \U0001f600") {
		t.Errorf("%q", line)
	}
	var back string
	if err := json.Unmarshal([]byte(line), &back); err != nil || back != hostile {
		t.Errorf("%q means %q, %v", line, back, err)
	}
}

// An archive on a terminal is refused before cloved is asked for it.
func TestCopyOutToATerminal(t *testing.T) {
	_, slave := pseudoTerminal(t)
	_, err := copyOut(t.Context(), &screen{out: slave}, nil, "/x", "-")
	if err == nil || !strings.Contains(err.Error(), "terminal") {
		t.Errorf("%v", err)
	}
}

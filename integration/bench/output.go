package main

import (
	"fmt"
	"os/exec"
	"strconv"
	"strings"
	"time"
)

// tail keeps the end of a command's output.
type tail struct{ text []byte }

// tailBytes is enough for clove's --debug output of one run.
const tailBytes = 64 << 10

func (t *tail) Write(p []byte) (int, error) {
	t.text = append(t.text, p...)
	if over := len(t.text) - tailBytes; over > 0 {
		t.text = t.text[over:]
	}
	return len(p), nil
}

// moment is the time that `date +%s%N` has printed.
func moment(said []byte) (time.Time, error) {
	ns, err := strconv.ParseInt(strings.TrimSpace(string(said)), 10, 64)
	if err != nil {
		return time.Time{}, fmt.Errorf("cannot tell when the agent ran: %w", err)
	}
	return time.Unix(0, ns), nil
}

// output is the last line that a program prints about itself, empty if it fails.
func output(name string, args ...string) string {
	text, err := exec.Command(name, args...).Output()
	if err != nil {
		return ""
	}
	return lastLine(text)
}

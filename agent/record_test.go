package agent

import (
	"os"
	"reflect"
	"strings"
	"testing"
)

// The page on the record names each field, and its version.
func TestRecordIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../docs/record.md")
	if err != nil {
		t.Fatal(err)
	}
	for _, of := range []any{Record{}, Usage{}, ModelUse{}, Events{}, LimitHit{}, Stopped{}, Denial{}, Failure{}, Host{}} {
		fields := reflect.TypeOf(of)
		for i := range fields.NumField() {
			name, _, _ := strings.Cut(fields.Field(i).Tag.Get("json"), ",")
			if !strings.Contains(string(page), "`"+name+"`") {
				t.Errorf("docs/record.md does not name %s of %s", name, fields.Name())
			}
		}
	}
	for _, status := range Statuses {
		if !strings.Contains(string(page), "`"+string(status)+"`") {
			t.Errorf("docs/record.md does not name the status %s", status)
		}
	}
	if RecordVersion != 2 || !strings.Contains(string(page), "describes version 2") {
		t.Errorf("docs/record.md describes another version than %d", RecordVersion)
	}
}

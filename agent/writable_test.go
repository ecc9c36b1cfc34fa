package agent

import (
	"encoding/json"
	"reflect"
	"strings"
	"testing"
)

func TestWritableIsChecked(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		files Files
		want  string // empty: it passes
	}{
		"none":              {Files{ReadOnly: true}, ""},
		"one":               {Files{ReadOnly: true, Writable: []string{"/tmp"}}, ""},
		"all":               {Files{ReadOnly: true, Writable: WritablePlaces}, ""},
		"a writable root":   {Files{Writable: []string{"/tmp"}}, "no effect without a read-only root"},
		"an empty list":     {Files{ReadOnly: true, Writable: []string{}}, "is empty"},
		"nothing at all":    {Files{Writable: []string{}}, "is empty"},
		"another directory": {Files{ReadOnly: true, Writable: []string{"/tmp", "/usr"}}, `"/usr" is not a place`},
		"a part of one":     {Files{ReadOnly: true, Writable: []string{"/tmp/mine"}}, "is not a place"},
		"another form":      {Files{ReadOnly: true, Writable: []string{"/tmp/"}}, "is not a place"},
		"no path":           {Files{ReadOnly: true, Writable: []string{""}}, "is not a place"},
		"twice":             {Files{ReadOnly: true, Writable: []string{"/tmp", "/dev/shm", "/tmp"}}, "/tmp is in the list twice"},
	} {
		s := whole()
		s.Files = row.files
		err := s.Validate()
		if (err == nil) != (row.want == "") || err != nil && (!strings.Contains(err.Error(), row.want) || KindOf(err) != KindInvalid || FailureOf(err).Hint == "") {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A spec comes back from the store as it was, and an empty list from the API is not taken for
// none.
func TestWritableSurvivesJSON(t *testing.T) {
	t.Parallel()
	for _, list := range [][]string{nil, {"/tmp"}} {
		text, err := json.Marshal(Files{ReadOnly: true, Writable: list})
		if err != nil {
			t.Fatal(err)
		}
		var back Files
		if err := json.Unmarshal(text, &back); err != nil || !reflect.DeepEqual(back.Writable, list) {
			t.Errorf("%s: %v, %q", text, err, back.Writable)
		}
	}
	var asked Files
	if err := json.Unmarshal([]byte(`{"read_only": true, "writable": []}`), &asked); err != nil || asked.ValidateWritable() == nil {
		t.Errorf("an empty list passes: %v, %q", err, asked.Writable)
	}
}

func TestStaysWritable(t *testing.T) {
	t.Parallel()
	for _, place := range WritablePlaces {
		if !(Files{}).StaysWritable(place) || !(Files{ReadOnly: true}).StaysWritable(place) {
			t.Errorf("%s is read-only without a list", place)
		}
		if got := (Files{ReadOnly: true, Writable: []string{"/tmp"}}).StaysWritable(place); got != (place == "/tmp") {
			t.Errorf("%s with a list of /tmp: %v", place, got)
		}
	}
}

package bundle

import (
	"encoding/json"
	"fmt"
	"net/netip"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

// plant sets every text below v to a different value, and records its path.
func plant(v reflect.Value, path string, planted map[string]string) {
	switch v.Kind() {
	case reflect.String:
		text := fmt.Sprintf("planted-%d", len(planted))
		planted[text] = path
		v.SetString(text)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		plant(v.Elem(), path, planted)
	case reflect.Slice:
		if v.Type().Elem().Kind() == reflect.Uint8 {
			v.SetBytes([]byte("planted"))
			return
		}
		n := 1
		if path == "spec.command" || path == "record.command" || path == "previous.command" {
			n = 2
		}
		v.Set(reflect.MakeSlice(v.Type(), n, n))
		for i := range n {
			plant(v.Index(i), path+"[]", planted)
		}
	case reflect.Map:
		value := reflect.New(v.Type().Elem()).Elem()
		plant(value, path+"{}", planted)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(reflect.ValueOf("key").Convert(v.Type().Key()), value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() || v.Type() == reflect.TypeFor[netip.AddrPort]() || v.Type() == reflect.TypeFor[netip.Addr]() {
			return
		}
		for i := range v.NumField() {
			name, _, _ := strings.Cut(v.Type().Field(i).Tag.Get("json"), ",")
			plant(v.Field(i), strings.TrimPrefix(path+"."+name, "."), planted)
		}
	}
}

// TestEveryTextIsDecided: each text that a run can contain is on the list or is left out. A
// new one is left out.
func TestEveryTextIsDecided(t *testing.T) {
	t.Parallel()
	var run agent.Run
	planted := map[string]string{}
	plant(reflect.ValueOf(&run).Elem(), "", planted)
	run.Spec.Env = []string{"TOKEN=planted-env", "planted-without-value"}
	stored, err := json.Marshal(run)
	if err != nil {
		t.Fatal(err)
	}
	shown, err := Redact(stored)
	if err != nil {
		t.Fatal(err)
	}
	for text, path := range planted {
		allowed := harmless()[path] || harmless()[strings.Replace(path, "previous.", "record.", 1)] || strings.HasSuffix(path, ".command[]")
		if came := strings.Contains(string(shown), `"`+text+`"`); came && !allowed {
			t.Errorf("%s comes out", path)
		} else if !came && harmless()[path] {
			t.Errorf("%s does not come out, and may", path)
		}
	}
	for _, secret := range []string{"planted-env", "planted-without-value", "cGxhbnRlZA"} {
		if strings.Contains(string(shown), secret) {
			t.Errorf("%q comes out", secret)
		}
	}
	for _, kept := range []string{`"TOKEN=(left out)"`, `"(1 arguments left out)"`, `"key": "(left out)"`} {
		if !strings.Contains(string(shown), kept) {
			t.Errorf("%q is not there", kept)
		}
	}
}

// TestHarmlessExists: every path on the list exists; after a renaming its value would be left
// out.
func TestHarmlessExists(t *testing.T) {
	t.Parallel()
	var run agent.Run
	planted := map[string]string{}
	plant(reflect.ValueOf(&run).Elem(), "", planted)
	var paths []string
	for _, path := range planted {
		paths = append(paths, path)
	}
	times := []string{"turn.not_before", "turn.since", "created", "started", "record.started", "record.ended", "record.denials[].time", "spec.egress.publish[].host", "spec.egress.dns[]"}
	for path := range harmless() {
		if !slices.Contains(paths, path) && !slices.Contains(times, path) {
			t.Errorf("a run has no text %s", path)
		}
	}
}

// JSON that is not a run is left out, too.
func TestOddShapesAreLeftOut(t *testing.T) {
	t.Parallel()
	for _, stored := range []string{`{"spec":{"command":[["a","planted"],"planted"]}}`, `{"spec":{"command":[{"a":"planted"}]}}`, `{"spec":{"command":"planted"}}`,
		`{"spec":{"env":[["planted"],{"a":"planted"},1,"planted"]}}`, `{"spec":{"env":"planted"}}`, `{"record":{"enforced":{"a":["planted"]}}}`} {
		shown, err := Redact([]byte(stored))
		if err != nil || strings.Contains(string(shown), "planted") {
			t.Errorf("%v, %s", err, shown)
		}
	}
}

func TestRedactTakesListsAndRefusesOthers(t *testing.T) {
	t.Parallel()
	shown, err := Redact([]byte(`[{"spec":{"name":"a","env":["A=planted"],"new":{"text":"planted","number":12345678901234567890}}}]`))
	if err != nil || strings.Contains(string(shown), "planted") || !strings.Contains(string(shown), `"name": "a"`) || !strings.Contains(string(shown), "12345678901234567890") {
		t.Errorf("%v, %s", err, shown)
	}
	if shown, err := Redact([]byte(`"planted`)); err == nil || len(shown) > 0 {
		t.Errorf("%v, %s", err, shown)
	}
	if shown, err := Redact([]byte(`"planted"`)); err != nil || strings.Contains(string(shown), "planted") {
		t.Errorf("%v, %s", err, shown)
	}
}

package store

import (
	"encoding/json"
	"flag"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
)

var update = flag.Bool("update", false, "write the golden files anew")

// The golden file is the format on users' disks. A field that was renamed or lost shows as a
// difference: then schema 3 needs a migration. A new field needs only -update.
func TestStoredFieldsAreGolden(t *testing.T) {
	t.Parallel()
	const golden = "testdata/run.golden.json"
	var run agent.Run
	number := 0
	fillAll(t, reflect.ValueOf(&run).Elem(), &number)
	got, err := json.MarshalIndent(run, "", "  ")
	must(t, err)
	got = append(got, '\n')
	if *update {
		must(t, os.MkdirAll("testdata", 0o755))
		must(t, os.WriteFile(golden, got, 0o644))
	}
	want, err := os.ReadFile(golden)
	must(t, err)
	if string(got) != string(want) {
		t.Errorf("a stored run is not what it was; got\n%s", got)
	}
	read, err := decode([]byte("id"), want)
	must(t, err)
	if !reflect.DeepEqual(*read, run) {
		t.Errorf("what was stored reads as\n%+v, want\n%+v", *read, run)
	}
}

// A run whose records are of version 1 reads, and is stored unchanged: the fields of version
// 2 are absent.
func TestARunWithRecordsOfVersion1Reads(t *testing.T) {
	t.Parallel()
	stored, err := os.ReadFile("testdata/run.record1.json")
	must(t, err)
	run, err := decode([]byte("id"), stored)
	must(t, err)
	for _, r := range []*agent.Record{run.Record, run.Previous} {
		if r == nil || r.Version != 1 || r.Parent != "" || r.Namespace != "" || r.Usage.Models != nil || r.Limit == nil || r.Usage.CPUMS == nil {
			t.Errorf("%+v", r)
		}
	}
	again, err := json.MarshalIndent(run, "", "  ")
	must(t, err)
	if string(again)+"\n" != string(stored) {
		t.Errorf("it is stored as\n%s", again)
	}
	if problem := wrongRecord(agent.Spec{ID: run.Record.ID, Name: run.Record.Name}, *run.Record); problem != "" {
		t.Errorf("a record of version 1 is refused: %s", problem)
	}
}

// A run that was stored before runs had parents reads as one that a person started, and is
// stored unchanged.
func TestARunWithoutAParentReads(t *testing.T) {
	t.Parallel()
	golden, err := os.ReadFile("testdata/run.record1.json")
	must(t, err)
	var fields map[string]json.RawMessage
	must(t, json.Unmarshal(golden, &fields))
	if len(fields["parent"]) == 0 {
		t.Fatal("the control: a run has no parent at all")
	}
	delete(fields, "parent")
	old, err := json.Marshal(fields)
	must(t, err)
	run, err := decode([]byte("id"), old)
	must(t, err)
	again, err := json.Marshal(run)
	must(t, err)
	if run.Parent != "" || strings.Contains(string(again), "parent") {
		t.Errorf("it has the parent %q, and is stored as %s", run.Parent, again)
	}
}

// fillAll sets every field below v, at any depth, to a different value.
func fillAll(t *testing.T, v reflect.Value, number *int) {
	*number++
	switch n := *number; v.Kind() {
	case reflect.String:
		v.SetString(fmt.Sprintf("text %d", n))
	case reflect.Int, reflect.Int64:
		v.SetInt(int64(n))
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		v.SetUint(uint64(n % 256))
	case reflect.Float64:
		v.SetFloat(float64(n) + 0.5)
	case reflect.Bool:
		v.SetBool(true)
	case reflect.Pointer:
		v.Set(reflect.New(v.Type().Elem()))
		fillAll(t, v.Elem(), number)
	case reflect.Slice:
		v.Set(reflect.MakeSlice(v.Type(), 1, 1))
		fillAll(t, v.Index(0), number)
	case reflect.Map:
		key, value := reflect.New(v.Type().Key()).Elem(), reflect.New(v.Type().Elem()).Elem()
		fillAll(t, key, number)
		fillAll(t, value, number)
		v.Set(reflect.MakeMap(v.Type()))
		v.SetMapIndex(key, value)
	case reflect.Struct:
		if v.Type() == reflect.TypeFor[time.Time]() {
			v.Set(reflect.ValueOf(time.Unix(int64(n), int64(n)).UTC()))
			return
		}
		if v.Type() == reflect.TypeFor[netip.AddrPort]() {
			v.Set(reflect.ValueOf(netip.AddrPortFrom(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)}), uint16(n))))
			return
		}
		if v.Type() == reflect.TypeFor[netip.Addr]() {
			v.Set(reflect.ValueOf(netip.AddrFrom4([4]byte{192, 0, 2, byte(n)})))
			return
		}
		for i := range v.NumField() {
			fillAll(t, v.Field(i), number)
		}
	default:
		t.Fatalf("cannot fill a %s: teach fillAll", v.Type())
	}
}

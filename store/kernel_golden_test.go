package store

import (
	"encoding/json"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"go.etcd.io/bbolt"

	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/grant"
)

// The golden files are what is on people's disks, as TestStoredFieldsAreGolden's is.
func TestKernelFieldsAreGolden(t *testing.T) {
	t.Parallel()
	for name, value := range map[string]any{"account": &budget.Account{}, "reservation": &budget.Reservation{}, "grant": &grant.Grant{}} {
		golden := filepath.Join("testdata", name+".golden.json")
		number := 0
		fillAll(t, reflect.ValueOf(value).Elem(), &number)
		if a, ok := value.(*budget.Account); ok {
			a.Key = "" // it is the row's key
		}
		got, err := json.MarshalIndent(value, "", "  ")
		must(t, err)
		got = append(got, '\n')
		if *update {
			must(t, os.WriteFile(golden, got, 0o644))
		}
		want, err := os.ReadFile(golden)
		must(t, err)
		if string(got) != string(want) {
			t.Errorf("a stored %s is not what it was; got\n%s", name, got)
		}
		read := reflect.New(reflect.TypeOf(value).Elem()).Interface()
		must(t, json.Unmarshal(want, read))
		if !reflect.DeepEqual(read, value) {
			t.Errorf("what was stored reads as\n%+v, want\n%+v", read, value)
		}
	}
}

// A file of schema 1, which had only its version, gets the buckets, and a copy of it stays.
func TestKernelOfSchema1(t *testing.T) {
	t.Parallel()
	path := writeBolt(t, func(tx *bbolt.Tx) error { return kernelFormat.setSchema(tx, 1) })
	noEpilogue(t, path)
	k := openKernel(t, path)
	inTx(t, k, count("7"))
	if problems, err := k.Check(); err != nil || problems != nil {
		t.Errorf("%q, %v", problems, err)
	}
	if _, err := os.Stat(path + ".schema1"); err != nil {
		t.Error(err)
	}
}

package linked

import (
	"bytes"
	"os"
	"testing"
)

// FuzzRead: whatever a file has, it is read in bounded time and memory, and the results are
// within the bounds.
func FuzzRead(f *testing.F) {
	whole := made{interpreter: "/lib64/ld.so", needed: []string{"liba.so", "libb.so"}, rpath: "/a:/b", runpath: "$ORIGIN"}.bytes()
	f.Add(whole)
	for _, cut := range []int{16, 64, 120, 200, len(whole) - 1} {
		f.Add(whole[:cut])
	}
	for at := range 64 {
		broken := bytes.Clone(whole)
		broken[at] = 0xff
		f.Add(broken)
	}
	if self, err := os.ReadFile("/bin/true"); err == nil {
		f.Add(self)
	}
	f.Fuzz(func(t *testing.T, file []byte) {
		o, err := Read(bytes.NewReader(file))
		if err != nil {
			return
		}
		if len(o.Needed) > neededMost || len(o.Interpreter) > textMost {
			t.Errorf("%d names", len(o.Needed))
		}
		set := NewSet(root{files: map[string][]byte{"/p": file, "/usr/lib/liba.so": file}})
		_, _ = set.Add("/p") // returns
		if len(set.Paths()) > 2 {
			t.Errorf("%q", set.Paths())
		}
	})
}

// FuzzParseCache: no entry leads out of the file.
func FuzzParseCache(f *testing.F) {
	whole := cacheOf("liba.so", "/usr/lib/liba.so", "libb.so", "/b")
	f.Add(whole)
	f.Add(whole[:50])
	f.Add(append([]byte(oldMagic+"\x00\xff\xff\xff\xff"), whole...))
	f.Fuzz(func(t *testing.T, text []byte) {
		for name, paths := range parseCache(text) {
			if name == "" || len(paths) == 0 || !bytes.Contains(text, []byte(name)) {
				t.Errorf("%q: %q", name, paths)
			}
		}
	})
}

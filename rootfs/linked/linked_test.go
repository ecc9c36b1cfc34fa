package linked

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"io/fs"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"
)

// object of a test, to be written as an ELF file.
type made struct {
	interpreter    string
	needed         []string
	rpath, runpath string
}

// bytes writes one PT_LOAD over all, at an address that is not the offset.
func (m made) bytes() []byte {
	const base = 0x400000
	names := []byte{0}
	name := func(text string) uint64 {
		at := len(names)
		names = append(append(names, text...), 0)
		return uint64(at)
	}
	var table []elf.Dyn64
	for _, n := range m.needed {
		table = append(table, elf.Dyn64{Tag: int64(elf.DT_NEEDED), Val: name(n)})
	}
	for tag, text := range map[elf.DynTag]string{elf.DT_RPATH: m.rpath, elf.DT_RUNPATH: m.runpath} {
		if text != "" {
			table = append(table, elf.Dyn64{Tag: int64(tag), Val: name(text)})
		}
	}
	interpreter := name(m.interpreter)
	count := 2
	if m.interpreter != "" {
		count++
	}
	dynamicAt := uint64(64 + 56*count)
	namesAt := dynamicAt + uint64(16*(len(table)+2))
	table = append(table, elf.Dyn64{Tag: int64(elf.DT_STRTAB), Val: base + namesAt}, elf.Dyn64{})
	all := namesAt + uint64(len(names))
	head := elf.Header64{Type: uint16(elf.ET_DYN), Machine: uint16(machines[runtime.GOARCH]), Phoff: 64, Phentsize: 56, Phnum: uint16(count)}
	copy(head.Ident[:], elf.ELFMAG+"\x02\x01\x01")
	programs := []elf.Prog64{{Type: uint32(elf.PT_LOAD), Vaddr: base, Filesz: all}, {Type: uint32(elf.PT_DYNAMIC), Off: dynamicAt, Filesz: uint64(16 * len(table))}}
	if m.interpreter != "" {
		programs = append(programs, elf.Prog64{Type: uint32(elf.PT_INTERP), Off: namesAt + interpreter, Filesz: uint64(len(m.interpreter) + 1)})
	}
	var out bytes.Buffer
	for _, part := range []any{head, programs, table, names} {
		if err := binary.Write(&out, binary.LittleEndian, part); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// root is a root in memory: files by path, and links among them.
type root struct {
	files map[string][]byte
	links map[string]string
}

type memory struct{ *bytes.Reader }

func (memory) Close() error { return nil }

func (r root) Open(at string) (File, string, error) {
	if to := r.links[at]; to != "" {
		at = to
	}
	text, there := r.files[at]
	if !there {
		return nil, at, fs.ErrNotExist
	}
	return memory{bytes.NewReader(text)}, at, nil
}

// cacheOf writes the loader's cache.
func cacheOf(entries ...string) []byte {
	head := make([]byte, cacheHeader+cacheEntry*len(entries)/2)
	copy(head, cacheMagic)
	binary.LittleEndian.PutUint32(head[cacheCountAt:], uint32(len(entries)/2))
	text := head
	for i, entry := range entries {
		at := cacheHeader + cacheEntry*(i/2)
		binary.LittleEndian.PutUint32(text[at:], architecture[runtime.GOARCH]|3)
		binary.LittleEndian.PutUint32(text[at+4+4*(i%2):], uint32(len(text)))
		text = append(append(text, entry...), 0)
	}
	return text
}

func lib(needed ...string) []byte { return made{needed: needed}.bytes() }

// TestWhatTheLoaderTakes: each row is one rule of ld.so(8).
func TestWhatTheLoaderTakes(t *testing.T) {
	t.Parallel()
	last := standardDirs[runtime.GOARCH][len(standardDirs[runtime.GOARCH])-1]
	for name, row := range map[string]struct {
		program made
		files   map[string][]byte
		want    []string
	}{
		"static":        {made{}, nil, nil},
		"a loader":      {made{interpreter: "/lib64/ld.so"}, map[string][]byte{"/lib64/ld.so": lib()}, []string{"/lib64/ld.so"}},
		"standard":      {made{needed: []string{"a"}}, map[string][]byte{last + "/a": lib()}, []string{last + "/a"}},
		"cache first":   {made{needed: []string{"a"}}, map[string][]byte{last + "/a": lib(), "/x/a": lib(), cachePath: cacheOf("a", "/x/a")}, []string{"/x/a"}},
		"all of cache":  {made{needed: []string{"a"}}, map[string][]byte{"/y/a": lib(), "/x/a": lib(), cachePath: cacheOf("a", "/x/a", "a", "/y/a", "b", "/z")}, []string{"/x/a", "/y/a"}},
		"runpath":       {made{needed: []string{"a"}, runpath: "/nowhere:/r"}, map[string][]byte{"/r/a": lib(), "/x/a": lib(), cachePath: cacheOf("a", "/x/a")}, []string{"/r/a"}},
		"runpath beats": {made{needed: []string{"a"}, runpath: "/r", rpath: "/q"}, map[string][]byte{"/r/a": lib(), "/q/a": lib()}, []string{"/r/a"}},
		"not inherited": {made{needed: []string{"a"}, runpath: "/r"}, map[string][]byte{"/r/a": lib("b"), "/r/b": lib(), last + "/b": lib()}, []string{"/r/a", last + "/b"}},
		"inherited":     {made{needed: []string{"a"}, rpath: "/r"}, map[string][]byte{"/r/a": lib("b"), "/r/b": lib(), last + "/b": lib()}, []string{"/r/a", "/r/b"}},
		"origin":        {made{needed: []string{"a"}, runpath: "$ORIGIN/../l"}, map[string][]byte{"/l/a": lib()}, []string{"/l/a"}},
		"braces":        {made{needed: []string{"a"}, runpath: "${ORIGIN}/l"}, map[string][]byte{"/bin/l/a": lib()}, []string{"/bin/l/a"}},
		"relative":      {made{needed: []string{"a"}, runpath: "l:."}, map[string][]byte{"/bin/l/a": lib(), "/bin/a": lib()}, nil},
		"a path":        {made{needed: []string{"/q/a", "q/a"}}, map[string][]byte{"/q/a": lib()}, []string{"/q/a"}},
		"processors":    {made{needed: []string{"a"}, runpath: "/r"}, map[string][]byte{"/r/a": lib(), "/r/glibc-hwcaps/x86-64-v3/a": lib()}, []string{"/r/a", "/r/glibc-hwcaps/x86-64-v3/a"}},
		"not a library": {made{needed: []string{"a"}, runpath: "/r:/q"}, map[string][]byte{"/r/a": []byte("text"), "/q/a": lib()}, []string{"/q/a"}},
		"a circle":      {made{needed: []string{"a"}, runpath: "/r"}, map[string][]byte{"/r/a": made{needed: []string{"a", "b"}, runpath: "/r"}.bytes(), "/r/b": made{needed: []string{"a"}, runpath: "/r"}.bytes()}, []string{"/r/a", "/r/b"}},
		"libc's own":    {made{needed: []string{"libc.so.6"}}, map[string][]byte{last + "/libc.so.6": lib(), last + "/libgcc_s.so.1": lib()}, []string{last + "/libc.so.6", last + "/libgcc_s.so.1"}},
	} {
		if runtime.GOARCH != "amd64" && name == "processors" {
			continue
		}
		files := map[string][]byte{"/bin/p": row.program.bytes()}
		for at, text := range row.files {
			files[at] = text
		}
		set := NewSet(root{files: files})
		real, err := set.Add("/bin/p")
		want := append([]string{"/bin/p"}, row.want...)
		slices.Sort(want)
		if err != nil || real != "/bin/p" || !slices.Equal(set.Paths(), want) {
			t.Errorf("%s: %s, %q, %v", name, real, set.Paths(), err)
		}
	}
}

func TestWhatIsMissing(t *testing.T) {
	t.Parallel()
	set := NewSet(root{files: map[string][]byte{"/p": lib("a"), "/q": made{interpreter: "/lib64/none"}.bytes(), "/r": made{interpreter: "none"}.bytes(), "/t": []byte("text")}})
	if _, err := set.Add("/p"); err != nil || set.Missing()["a"] != "/p" {
		t.Errorf("%v, %v", err, set.Missing())
	}
	if _, err := set.Add("/q"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("a loader that is nowhere: %v", err)
	}
	if _, err := set.Add("/r"); err == nil {
		t.Error("a relative loader passes")
	}
	if _, err := set.Add("/t"); !errors.Is(err, ErrNoObject) {
		t.Errorf("a text: %v", err)
	}
}

// TestLinksAreOneFile: a program by two names is one mount.
func TestLinksAreOneFile(t *testing.T) {
	t.Parallel()
	set := NewSet(root{files: map[string][]byte{"/p": lib()}, links: map[string]string{"/a": "/p", "/b": "/p"}})
	for _, at := range []string{"/a", "/b", "/p"} {
		if real, err := set.Add(at); real != "/p" || err != nil {
			t.Errorf("%s: %s, %v", at, real, err)
		}
	}
	if got := set.Paths(); !slices.Equal(got, []string{"/p"}) {
		t.Errorf("%q", got)
	}
}

// TestASetIsBounded: a hostile root has a program with a thousand libraries that have a
// thousand each.
func TestASetIsBounded(t *testing.T) {
	t.Parallel()
	files := map[string][]byte{}
	var names []string
	for i := range setMost + 10 {
		name := strings.Repeat("a", i%50) + string(rune('A'+i/50))
		names = append(names, name)
	}
	for _, name := range names {
		files["/usr/lib/"+name] = lib()
	}
	for i := 0; i < len(names); i += neededMost / 2 {
		files["/p"+string(rune('0'+i/512))] = lib(names[i:min(len(names), i+neededMost/2)]...)
	}
	set := NewSet(root{files: files})
	var last error
	for at := range files {
		if strings.HasPrefix(at, "/p") {
			if _, err := set.Add(at); err != nil {
				last = err
			}
		}
	}
	if !errors.Is(last, ErrTooMany) {
		t.Errorf("%d files, %v", len(set.Paths()), last)
	}
}

// TestASearchIsBounded: so has one with many directories, for many names or the same one.
func TestASearchIsBounded(t *testing.T) {
	t.Parallel()
	dirs := "/b"
	for i := range 400 {
		dirs += ":/c" + string(rune('a'+i%26)) + strings.Repeat("d", i%3) + string(rune('a'+i/26))
	}
	files := map[string][]byte{}
	for i := range 40 {
		m := made{runpath: dirs}
		for range 1000 {
			m.needed = append(m.needed, "same")
		}
		files["/p"+strings.Repeat("p", i)] = m.bytes()
	}
	set := NewSet(root{files: files})
	var last error
	began := time.Now()
	for at := range files {
		if _, err := set.Add(at); err != nil {
			last = err
		}
	}
	if !errors.Is(last, ErrTooMany) || set.looks > looksMost+10_000 {
		t.Errorf("%d looks in %s, %v", set.looks, time.Since(began), last)
	}
}

func TestScriptInterpreter(t *testing.T) {
	t.Parallel()
	for text, want := range map[string][2]string{
		"#!/bin/sh\n": {"/bin/sh", ""}, "#! /usr/bin/env  python3 -u\nx": {"/usr/bin/env", "python3 -u"}, "#!/bin/sh": {"/bin/sh", ""},
		"#!\n": {}, "text": {}, "": {}, "\x7fELF": {},
	} {
		program, argument, ok := ScriptInterpreter(bytes.NewReader([]byte(text)))
		if program != want[0] || argument != want[1] || ok != (want[0] != "") {
			t.Errorf("%q: %q, %q, %v", text, program, argument, ok)
		}
	}
}

func TestModules(t *testing.T) {
	t.Parallel()
	for real, want := range map[string]string{
		"/usr/bin/python3.11": "/usr/lib/python3.11/lib-dynload", "/opt/py/bin/python3.9": "/opt/py/lib/python3.9/lib-dynload",
		"/usr/bin/python3": "", "/usr/bin/python3.11-config": "", "/usr/bin/sh": "", "/usr/bin/perl": "/usr/lib/*/perl-base /usr/lib/*/perl/5.*",
	} {
		if got := strings.Join(Modules(real), " "); got != want {
			t.Errorf("%s: %q", real, got)
		}
	}
}

// TestTheOldCacheIsSkipped: glibc before 2.32 wrote both forms into one file.
func TestTheOldCacheIsSkipped(t *testing.T) {
	t.Parallel()
	old := make([]byte, oldHeader+3*oldEntry)
	copy(old, oldMagic)
	old[12] = 3
	old = append(old, make([]byte, (8-len(old)%8)%8)...)
	if got := parseCache(append(old, cacheOf("a", "/x/a")...)); !slices.Equal(got["a"], []string{"/x/a"}) {
		t.Errorf("%q", got)
	}
}

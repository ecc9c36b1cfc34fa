package linked

import (
	"path"
	"regexp"
	"sync"
)

// standardDirs are the last places where loaders look: those of Debian's and Fedora's GNU C
// library, and of musl.
var standardDirs = map[string][]string{
	"amd64": {"/lib/x86_64-linux-gnu", "/usr/lib/x86_64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/local/lib", "/usr/lib"},
	"arm64": {"/lib/aarch64-linux-gnu", "/usr/lib/aarch64-linux-gnu", "/lib64", "/usr/lib64", "/lib", "/usr/local/lib", "/usr/lib"},
}

// The values that ld.so(8) puts in place of $LIB and $PLATFORM. $LIB depends on the distribution, so all
// are looked at.
var (
	libNames  = map[string][]string{"amd64": {"lib/x86_64-linux-gnu", "lib64", "lib"}, "arm64": {"lib/aarch64-linux-gnu", "lib64", "lib"}}
	platforms = map[string]string{"amd64": "x86_64", "arm64": "aarch64"}
)

// processors are the folders of glibc-hwcaps.
var processors = map[string][]string{"amd64": {"x86-64-v4", "x86-64-v3", "x86-64-v2"}}

// opened are libraries that a library opens by itself, by name. Without libgcc_s a thread of
// the GNU C library cannot be cancelled, and without the others older ones find no user and
// no host.
var opened = map[string][]string{
	"libc.so.6": {"libgcc_s.so.1", "libnss_files.so.2", "libnss_dns.so.2"},
}

// python is the name of an interpreter with its version.
var python = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^python(3\.\d+)$`) })

// Modules are patterns of the folders with compiled modules without which a program does
// little: those of the standard library of Python and Perl. real is the program's path.
func Modules(real string) []string {
	prefix, name := path.Dir(path.Dir(real)), path.Base(real)
	if m := python().FindStringSubmatch(name); m != nil {
		return []string{path.Join(prefix, "lib/python"+m[1], "lib-dynload")}
	}
	if name == "perl" {
		return []string{path.Join(prefix, "lib/*/perl-base"), path.Join(prefix, "lib/*/perl/5.*")}
	}
	return nil
}

// Package linked finds the files that are mapped when a program is executed: the program, its
// loader, and its libraries.
//
// # Theory of operation
//
// It reads what the kernel and the loader read, and in the same order: the program headers
// (never the section headers, which a program need not have), then for each DT_NEEDED the
// DT_RPATH of the object and of those that loaded it, DT_RUNPATH, /etc/ld.so.cache, and the
// standard directories (ld.so(8)). Where the loader chooses by the machine's processor
// (glibc-hwcaps), all alternatives are taken. The files that a C library opens by itself are in a
// table (opened), and so are the folders of modules that an interpreter cannot do without (Modules).
//
// All paths are paths of a root that is not built yet. A Files answers for it, so that no
// link leads out of it.
//
// # What it refuses to do
//
// It executes nothing, and asks no loader. A file may be hostile: each length is bounded
// before memory is taken for it, and there is no recursion. It knows 64-bit little-endian
// programs of this machine only. A library that a program opens with dlopen(3) is in no
// header, and remains unknown.
package linked

// Package sparse keeps the holes of files in tar archives.
//
// Theory of operation. archive/tar reads files with holes, but writes none. Write asks the kernel
// for the parts of a file that have data (lseek(2), SEEK_DATA), and writes these alone, with the
// PAX records of GNU's format 0.1 (GNU tar's manual, "PAX Format, Versions 0.0 and 0.1"), which GNU
// tar, Python and archive/tar read. Read finds the records in the header and leaves the holes out.
//
// A file with more parts than MostParts has fewer holes in the archive. The bounds on holes are the
// caller's: an untrusted process makes 16 TiB of them out of one block.
package sparse

// Package homedir finds credentials in a folder of a user's home, by the places and names that
// tools are known to keep them at.
//
// It looks at the known places (Places, by their path in the home) and at known names in the
// folder and in the folders right below it. A file that may also be harmless, such as .npmrc,
// counts only if its text has a token. Credentials at another place, or under another name, are
// not found: the list prevents accidents, and is no promise.
//
// It reads with the rights of the calling thread, at most 64 KiB of a file, and follows no link.
package homedir

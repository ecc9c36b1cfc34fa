// Package node registers clove with the containerd of a machine and removes it again,
// and has the machine's systemd keep cloved.
//
// containerd finds a runtime by a table in its configuration: one of the CRI
// plugin's runtimes, which a RuntimeClass names as its handler.
//
//   - Register and Unregister (block.go) are functions from one text to another.
//     What clove adds is one block between two marker lines, so that every other
//     byte stays as the administrator wrote it and taking it away restores the
//     text exactly. A TOML library parses both texts: the result must mean what
//     the old text meant plus the handler, else it is refused.
//
//   - config.go reads what a configuration says: its version, where its version
//     keeps runtimes, and the cgroup driver of the node's runc.
//
//   - Install and Uninstall (install.go) change the file: with a backup, by one
//     rename, and with a restart of containerd if that is asked for. A containerd
//     that does not come back gets the old file again: a node without a container
//     runtime is worse than one without clove.
//
//   - InstallWith and UninstallWith (cloved.go) put cloved before and after that:
//     the units of the Debian package (units.go), with the path of the programs.
//     A cloved of another origin is used and left alone. If cloved does not
//     serve, its units are removed; if the handler fails, cloved is removed too.
//
// It refuses what it cannot extend without changing it: tables written inline,
// configurations of version 1, a handler of that name that Install did not write,
// and, before containerd 2.0, an import that replaces the whole plugin. Where
// neither systemd runs nor a cloved, it refuses to leave pods without rules.
package node

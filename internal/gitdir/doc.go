// Package gitdir finds the repository of a folder whose .git is a file: a worktree
// (git-worktree(1)), a submodule, or a folder made with `git init --separate-git-dir`.
//
// The author of the folder wrote the file, for example the author of an archive, and may be
// hostile. So a repository belongs to the folder only if it says so itself, in files that the
// folder's author cannot write in another user's repository:
//
//   - the git directory is one of the repository's worktrees/, by canonical paths: a directory
//     elsewhere could name any repository in its commondir;
//   - its file gitdir names this folder, by its canonical path: a hard link of another folder's
//     .git is the same file. Of a submodule, core.worktree does;
//   - folder, git directory and repository have one owner;
//   - the repository has HEAD, objects and refs, none of them a link.
//
// Nothing names the folder of a separate git directory; its user has to name the directory.
//
// Read takes a snapshot of all that an agent needs of such a repository but the objects. Of the
// configuration that are the settings of a list, without passwords.
//
// It reads with the rights of the calling thread, within bounds, opens no link, FIFO or device
// in a repository, and starts no git.
package gitdir

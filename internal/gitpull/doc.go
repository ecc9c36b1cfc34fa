// Package gitpull takes commits that an agent made over into a repository of the host.
//
// The agent's copy of the repository is hostile. No git ever starts with it as its repository:
//
//	loose objects ─ as one pack ─┐
//	packs ───────────────────────┴▶ git index-pack ──▶ raw/      what the agent left
//	raw/, the host's objects ─────▶ git pack-objects ─▶ branch   what the new commits need
//	branch ───────────────────────▶ git index-pack --strict ──▶ final/
//	final/ ── rename ─────────────▶ objects/pack of the repository
//	git update-ref REF NEW OLD, git read-tree
//
// Raw and final are below objects/tmp_objdir-clove-* of the repository, a name that git gc removes
// if this process is killed. The first index-pack only computes the names of what it is given.
// pack-objects walks from the new commit to what the host has, so an object that is missing ends
// the whole, and other branches' objects are left out. index-pack --strict then checks each object as git
// fsck does, and that everything that it names is there.
//
// Each git runs in new mount, pid, network, ipc and uts namespaces, in a root with the host's
// /usr and the repository, both read-only but for the quarantine; with the ids of the repository's
// owner, no capability, no_new_privs, bounds on memory, processor time and the size of files, and
// without the owner's and the host's configuration, hooks and replacements. The repository's own
// configuration is read, which is the owner's. Only update-ref and read-tree, behind the
// checks, may write to the repository.
//
// It applies nothing but one ref, and moves that only from the value that the agent began with,
// or forward.
package gitpull

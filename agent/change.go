package agent

// Change is one difference between the agent's files and the host's. The agent chose every
// string in it.
type Change struct {
	Kind   string    `json:"kind"`             // added, changed, deleted, renamed
	Path   RawString `json:"path"`             // inside the sandbox
	Type   string    `json:"type,omitempty"`   // file, dir, symlink, fifo, socket, char, block, ref
	Size   int64     `json:"size"`             // bytes of a regular file, else 0
	Mode   uint32    `json:"mode"`             // the permission, setuid, setgid and sticky bits
	Target RawString `json:"target,omitempty"` // what a symbolic link says, the commit of a ref
	Sum    string    `json:"sum,omitempty"`    // of a file of the workspace, if it was asked for: equal sums, equal bytes
	Was    string    `json:"was,omitempty"`    // the type of the file before, where it was another type
	From   RawString `json:"from,omitempty"`   // the former path inside of a renamed directory
	// ExecutedBy names the host program that executes the file without being asked, as git
	// does with a hook; empty: clove knows none.
	ExecutedBy string `json:"executed_by,omitempty"`
	// Instructs names the agents that follow the file's text in this folder, as AGENTS.md;
	// empty: clove knows none.
	Instructs string `json:"instructs,omitempty"`
	// Unknown says why a program that clove does not know may execute it: it is in a new folder
	// whose name begins with a dot, with programs or commands in it. Empty: nothing points to that.
	Unknown string `json:"unknown,omitempty"`
	Lost    string `json:"lost,omitempty"`    // what the host's file does not have of the agent's, after it was applied
	Refused string `json:"refused,omitempty"` // why it was not applied, or why Diff did not descend into it
	// Contents are those of a file or link, if they were asked for.
	Contents *ChangeContents `json:"contents,omitempty"`
}

// ChangeContents are both sides of a change of a file or a link, whose content is its target. A
// side that does not exist, or is of another type, has none.
type ChangeContents struct {
	Before []byte `json:"before,omitempty"` // the host's
	After  []byte `json:"after,omitempty"`  // the agent's
	Mode   uint32 `json:"mode"`             // the permission bits of the host's; 0: it has none
	// Omitted is why both are missing; empty otherwise.
	Omitted string `json:"omitted,omitempty"`
}

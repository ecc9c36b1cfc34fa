package agent

// Change is one difference between what an agent left and what was there.
// Every text in it was chosen by the agent. Bytes of a name that are not UTF-8
// are replaced in JSON.
type Change struct {
	Kind   string `json:"kind"`             // added, changed, deleted
	Path   string `json:"path"`             // inside the sandbox
	Type   string `json:"type,omitempty"`   // file, dir, symlink, fifo, socket, char, block
	Size   int64  `json:"size"`             // bytes of a regular file, else 0
	Mode   uint32 `json:"mode"`             // the permission, setuid, setgid and sticky bits
	Target string `json:"target,omitempty"` // what a symbolic link says
	Was    string `json:"was,omitempty"`    // what stood there before, where that was of another type
	// ExecutedBy is the program of the host's that executes the file by itself, as
	// git does a hook; empty: none that clove knows.
	ExecutedBy string `json:"executed_by,omitempty"`
	Refused    string `json:"refused,omitempty"` // why it was not applied, or not looked at further
}

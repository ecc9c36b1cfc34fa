package harbor

import (
	"fmt"

	"clove.run/clove/internal/document"
)

// Refusal is why a task was not imported.
type Refusal struct {
	File string // in the task's folder
	Line int    // 0: of the whole file
	Why  string
}

func (r *Refusal) Error() string {
	if r.Line > 0 {
		return fmt.Sprintf("%s line %d: %s", r.File, r.Line, document.Shown(r.Why))
	}
	return r.File + ": " + document.Shown(r.Why)
}

func refused(file string, line int, format string, values ...any) error {
	return &Refusal{file, line, fmt.Sprintf(format, values...)}
}

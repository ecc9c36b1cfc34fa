package daemon

import (
	"path/filepath"

	"clove.run/clove/api"
	"clove.run/clove/store"
)

// shared serves the methods about kernel.db. It is made when the file is open.
type shared struct{ kernel *store.Kernel }

func (s shared) methods() map[string]handler {
	return map[string]handler{api.MethodBackup: handle(s.backup), api.MethodCheck: handle(s.check)}
}

// backup copies kernel.db: no other process may open it.
func (s shared) backup(_ *call, p api.BackupParams) (any, error) {
	if !filepath.IsAbs(p.File) {
		return nil, api.Failure(api.CodeParams, "name it from the root on", "file: %.256q is no absolute path", p.File)
	}
	return api.Nothing{}, s.kernel.Backup(p.File)
}

func (s shared) check(_ *call, _ api.Nothing) (any, error) {
	problems, err := s.kernel.Check()
	// An empty list, not null, where nothing is wrong.
	return api.CheckResult{Problems: append([]string{}, problems...)}, err
}

package runtime

import (
	"errors"
	"io/fs"
	"slices"

	"clove.run/clove/agent"
	"clove.run/clove/rootfs"
)

// Homes lists the kept homes of a user, for root everybody's, the one that changed last first.
func (r *Runtime) Homes(uid uint32) ([]agent.KeptHome, error) {
	homes, err := rootfs.Homes(r.paths.State)
	if err != nil {
		return nil, agent.Failed("kept homes", err)
	}
	all := []agent.KeptHome{}
	for _, h := range homes {
		if uid == 0 || h.UID == uid {
			all = append(all, agent.KeptHome{ID: h.ID(), UID: h.UID, Name: h.Name, Device: h.Device, Inode: h.Inode, Folder: h.Folder,
				Bytes: h.Bytes, Held: h.Held, Keep: h.Keep, Created: h.Created, Changed: h.Changed, InUse: h.InUse})
		}
	}
	slices.SortFunc(all, func(a, b agent.KeptHome) int { return b.Changed.Compare(a.Changed) })
	return all, nil
}

// RemoveHome removes a kept home that the user may see: by its id, or a home of the user's own by
// the name that only one of them has.
func (r *Runtime) RemoveHome(ref string, uid uint32) error {
	homes, err := r.Homes(uid)
	if err != nil {
		return err
	}
	var found []agent.KeptHome
	for _, h := range homes {
		if h.ID == ref || h.Name == ref && h.UID == uid {
			found = append(found, h)
		}
	}
	const hint = "`clove home ls` lists them"
	switch len(found) {
	case 0:
		return &agent.Error{Kind: agent.KindNotFound, Message: "there is no kept home " + ref, Hint: hint}
	case 1:
	default:
		return &agent.Error{Kind: agent.KindConflict, Message: "several folders have a kept home " + ref, Hint: "name it by its id; " + hint}
	}
	err = rootfs.RemoveHome(r.paths.State, found[0].ID)
	switch {
	case errors.Is(err, rootfs.ErrHomeBusy):
		return &agent.Error{Kind: agent.KindConflict, Message: "a run has the kept home " + ref, Hint: "stop the run first"}
	case errors.Is(err, fs.ErrNotExist):
		return &agent.Error{Kind: agent.KindNotFound, Message: "there is no kept home " + ref, Hint: hint}
	}
	return agent.Failed("kept home", err)
}

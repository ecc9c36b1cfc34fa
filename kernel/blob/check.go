package blob

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"clove.run/clove/api"
	"clove.run/clove/store"
)

// Holding is one reference, as the row says that has it.
type Holding struct {
	Owner  uint32
	Holder string
	Blob   *api.Blob // nil: it has none
}

// Check holds references, sizes and counts against what the rows of all holders say, and returns what is wrong, in
// words. Those of uploads are its own.
func Check(tx *store.KernelTx, others ...func(*store.KernelTx) ([]Holding, error)) (problems []string, err error) {
	wanted, used := map[string]int{}, map[uint32]int64{}
	count := func(all []Holding) {
		for _, h := range all {
			if h.Blob != nil {
				wanted[holds(h.Owner, h.Blob.SHA256, h.Holder)]++
			}
		}
	}
	for _, holdings := range others {
		all, herr := holdings(tx)
		err = cmp.Or(err, herr)
		count(all)
	}
	uploads, uerr := Uploads.Below(tx, "")
	for _, u := range uploads {
		if u.SHA256 == "" {
			used[u.Owner] += u.Bytes
			continue
		}
		count([]Holding{{u.Owner, UploadsOf(u.By), &api.Blob{SHA256: u.SHA256}}})
	}
	all, rerr := references.Below(tx, "")
	refs := map[string]int{}
	for _, r := range all {
		id := references.Key(r)
		if wanted[id] != r.Count {
			problems = append(problems, fmt.Sprintf("blob: %s refers %d times to %s, and %d rows do", r.Holder, r.Count, r.SHA256, wanted[id]))
		}
		delete(wanted, id)
		refs[key(r.Owner, r.SHA256)] += r.Count
	}
	for _, id := range slices.Sorted(maps.Keys(wanted)) {
		problems = append(problems, fmt.Sprintf("blob: the reference %s is not there", id))
	}
	rows, berr := Rows.Below(tx, "")
	for _, r := range rows {
		if id := Rows.Key(r); refs[id] != r.Refs {
			problems = append(problems, fmt.Sprintf("blob %s: has %d references, and counts %d", r.SHA256, refs[id], r.Refs))
		}
		delete(refs, Rows.Key(r))
		used[r.Owner] += r.Bytes
	}
	for _, id := range slices.Sorted(maps.Keys(refs)) {
		problems = append(problems, fmt.Sprintf("blob %s: is not there, and has references", id))
	}
	owners, oerr := Owners.Below(tx, "")
	for _, o := range owners {
		if used[o.Owner] != o.Bytes {
			problems = append(problems, fmt.Sprintf("blobs of user %d: are %d bytes, and counted as %d", o.Owner, used[o.Owner], o.Bytes))
		}
		delete(used, o.Owner)
	}
	for _, owner := range slices.Sorted(maps.Keys(used)) {
		problems = append(problems, fmt.Sprintf("blobs of user %d: are not counted", owner))
	}
	return problems, cmp.Or(err, uerr, rerr, berr, oerr)
}

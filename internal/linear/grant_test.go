package linear

import (
	"testing"
	"time"

	"github.com/anishathalye/porcupine"
)

// A derived grant goes with its parent, and nothing is derived from one that is gone.
func TestGrantModel(t *testing.T) {
	t.Parallel()
	at := func(op GrantOp, from string, refused bool, call, answer int64, ids ...string) porcupine.Operation {
		return porcupine.Operation{Input: GrantInput{Op: op, From: from}, Output: GrantOutput{Refused: refused, IDs: ids}, Call: call, Return: answer}
	}
	first := at(GrantDerive, "", false, 0, 1, "a")
	child := at(GrantDerive, "a", false, 2, 5, "b")
	for name, c := range map[string]struct {
		history []porcupine.Operation
		fails   bool
	}{
		"transitive":            {[]porcupine.Operation{first, child, at(GrantRevoke, "a", false, 6, 7, "b", "a"), at(GrantShow, "", false, 8, 9)}, false},
		"revoked and kept":      {[]porcupine.Operation{first, child, at(GrantRevoke, "a", false, 6, 7, "a"), at(GrantShow, "", false, 8, 9, "b")}, true},
		"beside the revocation": {[]porcupine.Operation{first, child, at(GrantRevoke, "a", false, 3, 4, "a", "b")}, false},
		"before the revocation": {[]porcupine.Operation{first, at(GrantRevoke, "a", false, 3, 4, "a"), at(GrantDerive, "a", true, 2, 5)}, false},
		"an orphan":             {[]porcupine.Operation{first, at(GrantRevoke, "a", false, 3, 4, "a"), at(GrantDerive, "a", false, 6, 7, "b")}, true},
		"lost":                  {[]porcupine.Operation{first, at(GrantShow, "", false, 2, 3)}, true},
		"revoked twice":         {[]porcupine.Operation{first, at(GrantRevoke, "a", false, 2, 3, "a"), at(GrantRevoke, "a", false, 4, 5, "a")}, true},
		"counted twice":         {[]porcupine.Operation{first, at(GrantShow, "", false, 2, 3, "a", "c")}, true},
	} {
		if err := CheckGrants(c.history, time.Minute); (err != nil) != c.fails {
			t.Errorf("%s: %v", name, err)
		}
	}
}

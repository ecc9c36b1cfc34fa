package linear

import (
	"fmt"
	"slices"
	"strings"

	"github.com/anishathalye/porcupine"
)

// GrantOp is what a worker does with the grants of a holder.
type GrantOp string

// The operations. Each is one step.
const (
	GrantDerive GrantOp = "derive" // a grant from From; empty: from the holder's first, which is never revoked
	GrantRevoke GrantOp = "revoke" // From, with all that was derived from it
	GrantShow   GrantOp = "show"   // every derived grant that there is
)

// GrantInput is an operation on the grants of one holder.
type GrantInput struct {
	Op     GrantOp
	Holder int
	From   string
}

// GrantOutput is the answer: the new grant, those that were revoked, or those that are shown.
type GrantOutput struct {
	Refused bool // there is no grant From
	IDs     []string
}

// GrantModel is the sequential specification of grants that are derived and revoked. Its state
// is the derived grants as text, so that two states can be compared: ID<PARENT, sorted.
var GrantModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return partition(history, func(input any) int { return input.(GrantInput).Holder })
	},
	Init: func() any { return "" },
	Step: func(state, input, output any) (bool, any) {
		held := parseHeld(state.(string))
		legal := held.apply(input.(GrantInput), output.(GrantOutput))
		return legal, held.String()
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(GrantInput), output.(GrantOutput)
		return fmt.Sprintf("%s %q: refused %v, %q", in.Op, in.From, out.Refused, out.IDs)
	},
}

// held is the parent of each derived grant that there is.
type held map[string]string

func parseHeld(text string) held {
	h := held{}
	for _, row := range strings.Fields(text) {
		id, parent, _ := strings.Cut(row, "<")
		h[id] = parent
	}
	return h
}

func (h held) String() string {
	var rows []string
	for id, parent := range h {
		rows = append(rows, id+"<"+parent)
	}
	slices.Sort(rows)
	return strings.Join(rows, " ")
}

// apply reports whether the answer is correct in this state, and changes the state.
func (h held) apply(in GrantInput, out GrantOutput) bool {
	_, there := h[in.From]
	switch in.Op {
	case GrantDerive:
		if in.From != "" && !there {
			return out.Refused
		}
		if out.Refused || len(out.IDs) != 1 {
			return false
		}
		_, twice := h[out.IDs[0]]
		h[out.IDs[0]] = in.From
		return !twice
	case GrantRevoke:
		return out.Refused == !there && same(h.remove(in.From), out.IDs)
	case GrantShow:
		all := []string{}
		for id := range h {
			all = append(all, id)
		}
		return !out.Refused && same(all, out.IDs)
	}
	return false
}

// remove removes a grant with all that were derived from it, and returns them.
func (h held) remove(id string) (gone []string) {
	if _, there := h[id]; !there {
		return nil
	}
	delete(h, id)
	gone = append(gone, id)
	for child, parent := range h {
		if parent == id {
			gone = append(gone, h.remove(child)...)
		}
	}
	return gone
}

// same compares without regard to the order.
func same(a, b []string) bool {
	a, b = slices.Sorted(slices.Values(a)), slices.Sorted(slices.Values(b))
	return slices.Equal(a, b)
}

// partition divides a history by a number of its inputs.
func partition(history []porcupine.Operation, of func(input any) int) (parts [][]porcupine.Operation) {
	for _, o := range history {
		for of(o.Input) >= len(parts) {
			parts = append(parts, nil)
		}
		parts[of(o.Input)] = append(parts[of(o.Input)], o)
	}
	return parts
}

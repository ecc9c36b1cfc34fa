package linear

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/anishathalye/porcupine"
)

// Check returns an error when no order of the history explains its answers.
// The search gives up after patience, which is an error as well.
func Check(history []porcupine.Operation, patience time.Duration) error {
	result, info := porcupine.CheckOperationsVerbose(Model, history, patience)
	switch result {
	case porcupine.Ok:
		return nil
	case porcupine.Unknown:
		return fmt.Errorf("%d operations: no order was found within %s, nor is there none", len(history), patience)
	}
	return fmt.Errorf("no order of the %d operations explains their answers\n%s", len(history), stuck(history, info))
}

// shown is how much of a history a reader can follow.
const shown = 30

// stuck tells the part of the history at which the longest explanation ends.
func stuck(history []porcupine.Operation, info porcupine.LinearizationInfo) string {
	var text strings.Builder
	for index, group := range Model.Partition(history) {
		longest := 0
		for _, partial := range info.PartialLinearizationsOperations()[index] {
			longest = max(longest, len(partial))
		}
		if longest == len(group) {
			continue
		}
		fmt.Fprintf(&text, "pair %d, explained up to number %d:\n", index, longest)
		slices.SortFunc(group, func(a, b porcupine.Operation) int { return cmp.Compare(a.Return, b.Return) })
		for _, o := range group[max(0, longest-shown):min(len(group), longest+shown/2)] {
			fmt.Fprintf(&text, "  %s to %s  worker %d  %s\n", time.Duration(o.Call), time.Duration(o.Return), o.ClientId, Model.DescribeOperation(o.Input, o.Output))
		}
		return text.String()
	}
	return text.String()
}

package linear

import (
	"fmt"

	"github.com/anishathalye/porcupine"
)

// KeyOp is what a caller does with a key.
type KeyOp string

// The operations. Each is one step.
const (
	KeyGet    KeyOp = "get"
	KeySet    KeyOp = "set"    // Value, if the version is If
	KeyDelete KeyOp = "delete" // if the version is If
)

// KeyInput is an operation on one key.
type KeyInput struct {
	Op    KeyOp
	Key   int
	If    *uint64 // nil: any
	Value int64
}

// KeyOutput is the answer. Of a get it is what there is, of a set the new version, and of a delete the version
// that is gone; 0: there was none.
type KeyOutput struct {
	Refused bool // the version is another
	Version uint64
	Value   int64
}

// kept is the state of a key in the model. last is the highest version that it has had.
type kept struct {
	version, last uint64
	value         int64
}

// KeyModel is the sequential specification of a key with versions. Those of a scope are shared by its keys,
// so a key's grow, not always by one.
var KeyModel = porcupine.Model{
	Partition: func(history []porcupine.Operation) [][]porcupine.Operation {
		return partition(history, func(input any) int { return input.(KeyInput).Key })
	},
	Init: func() any { return kept{} },
	Step: func(state, input, output any) (bool, any) {
		next := state.(kept)
		legal := next.apply(input.(KeyInput), output.(KeyOutput))
		return legal, next
	},
	DescribeOperation: func(input, output any) string {
		in, out := input.(KeyInput), output.(KeyOutput)
		wanted := "any"
		if in.If != nil {
			wanted = fmt.Sprint(*in.If)
		}
		return fmt.Sprintf("%s %d if %s: refused %v, version %d, %d", in.Op, in.Value, wanted, out.Refused, out.Version, out.Value)
	},
}

// apply reports whether the answer is correct in this state, and changes the state.
func (k *kept) apply(in KeyInput, out KeyOutput) bool {
	if in.Op == KeyGet {
		return out.Version == k.version && (out.Version == 0 || out.Value == k.value)
	}
	if other := in.If != nil && *in.If != k.version; other || out.Refused {
		return other && out.Refused
	}
	if in.Op == KeyDelete {
		legal := out.Version == k.version
		k.version = 0
		return legal
	}
	legal := out.Version > k.last
	*k = kept{out.Version, out.Version, in.Value}
	return legal
}

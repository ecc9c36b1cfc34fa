package seccomp

import "github.com/opencontainers/runtime-spec/specs-go"

// int32Mask covers the bits that the kernel reads of an argument of type int or unsigned int.
const int32Mask = 0xffffffff

// masked matches when argument index, under mask, equals value.
func masked(index uint, mask, value uint64) specs.LinuxSeccompArg {
	return specs.LinuxSeccompArg{Index: index, Value: mask, ValueTwo: value, Op: specs.OpMaskedEqual}
}

// equals matches when the 32-bit argument index equals value.
func equals(index uint, value uint32) specs.LinuxSeccompArg {
	return masked(index, int32Mask, uint64(value))
}

// all is one alternative: every argument comparison must match.
func all(args ...specs.LinuxSeccompArg) []specs.LinuxSeccompArg { return args }

// oneOf matches when the 32-bit argument index equals one of values.
func oneOf(index uint, values ...uint32) [][]specs.LinuxSeccompArg {
	var alternatives [][]specs.LinuxSeccompArg
	for _, value := range values {
		alternatives = append(alternatives, all(equals(index, value)))
	}
	return alternatives
}

// except matches when the 32-bit argument index equals none of values. A filter has no
// masked "not equal", so the alternatives are the largest aligned blocks of numbers without
// an excluded one: about 32 blocks for one value, fewer for each neighbour.
func except(index uint, values ...uint32) [][]specs.LinuxSeccompArg {
	return exceptBelow(index, 32, 0, values)
}

// exceptBelow covers the numbers that share prefix and differ in the lowest free bits.
func exceptBelow(index, free uint, prefix uint32, values []uint32) [][]specs.LinuxSeccompArg {
	mask := ^uint32(0) << free // a shift by 32 gives 0
	var inside []uint32
	for _, value := range values {
		if value&mask == prefix {
			inside = append(inside, value)
		}
	}
	switch {
	case len(inside) == 0:
		return [][]specs.LinuxSeccompArg{all(masked(index, uint64(mask), uint64(prefix)))}
	case free == 0:
		return nil
	}
	free--
	return append(exceptBelow(index, free, prefix|1<<free, inside),
		exceptBelow(index, free, prefix, inside)...)
}

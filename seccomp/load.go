package seccomp

import (
	"encoding/binary"
	"errors"
	"fmt"
	"runtime"
	"slices"
	"sync"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// Watch is a call that is reported although the profile allows it. A call that the profile
// refuses is refused as without it.
type Watch struct {
	Call string
	// Bits selects: only calls with one of these bits in the low half of the argument are
	// reported. 0: every call.
	Argument uint
	Bits     uint32
}

// Filter is a profile as the kernel gets it. Both programs are arrays of struct sock_filter
// in this machine's byte order, and decide alike.
type Filter struct {
	Plain     []byte // refuses by itself
	Reporting []byte // hands what it would refuse, and what is watched, to a listener

	enforcing []bpf.Instruction
	vm        *bpf.VM
	lock      sync.Mutex // the interpreter keeps no state today, and promises nothing
}

// Compile makes the programs of a checked profile. The gate is no option of prctl(2); the
// reporting program always hands that call to its listener. A number of no call would not do:
// a filter around all of clove, as a container has, answers it with ENOSYS, and that counts.
func Compile(profile *specs.LinuxSeccomp, gate uint32, watched ...Watch) (*Filter, error) {
	if verdictOf(profile, "execve") == Refused {
		return nil, errors.New("cannot load seccomp profile: it refuses execve, so no command can be executed under it")
	}
	f := &Filter{}
	var err error
	if f.enforcing, err = programOf(profile); err != nil {
		return nil, fmt.Errorf("cannot compile seccomp profile: %w", err)
	}
	if f.vm, err = bpf.NewVM(f.enforcing); err != nil {
		return nil, fmt.Errorf("cannot read seccomp profile back: %w", err)
	}
	if f.Plain, err = assemble(f.enforcing); err != nil {
		return nil, err
	}
	tail, err := watching(watched)
	if err != nil {
		return nil, err
	}
	f.Reporting, err = assemble(slices.Concat(throughGate(gate), reporting(f.enforcing, len(tail) > 0), tail))
	return f, err
}

func assemble(instructions []bpf.Instruction) ([]byte, error) {
	if len(instructions) > unix.BPF_MAXINSNS {
		return nil, fmt.Errorf("cannot load seccomp profile: it has %d instructions, and the kernel takes %d", len(instructions), unix.BPF_MAXINSNS)
	}
	raw, err := bpf.Assemble(instructions)
	if err != nil {
		return nil, fmt.Errorf("cannot assemble seccomp profile: %w", err)
	}
	program := make([]byte, 0, len(raw)*unix.SizeofSockFilter)
	for _, r := range raw {
		program = binary.NativeEndian.AppendUint16(program, r.Op)
		program = binary.NativeEndian.AppendUint32(append(program, r.Jt, r.Jf), r.K)
	}
	return program, nil
}

// Offsets of struct seccomp_data; offArguments is of the first one's low half, on a
// little-endian machine.
const (
	offNumber    = 0
	offArch      = 4
	offArguments = 16
	wordBytes    = 4
	argBytes     = 8
)

var report = bpf.RetConstant{Val: unix.SECCOMP_RET_USER_NOTIF}

// throughGate hands the one option of prctl(2) to the listener, before anything else is asked.
func throughGate(gate uint32) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: wordBytes},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: nativeAuditArch[runtime.GOARCH], SkipTrue: 5},
		bpf.LoadAbsolute{Off: offNumber, Size: wordBytes},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: unix.SYS_PRCTL, SkipTrue: 3},
		bpf.LoadAbsolute{Off: offArguments, Size: wordBytes},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: gate, SkipTrue: 1},
		report,
	}
}

// reporting is the same program, with other endings: what it refuses it hands to the
// listener, and what it allows it asks watching about. Every path through it stays as it is.
// ENOSYS stays an answer: it says that the kernel lacks the call, programs try that on
// purpose, and C libraries do so for each process and thread (clone3).
func reporting(program []bpf.Instruction, watched bool) []bpf.Instruction {
	changed := slices.Clone(program)
	for i, instruction := range program {
		end, ok := instruction.(bpf.RetConstant)
		if !ok {
			continue
		}
		switch action, errno := end.Val&unix.SECCOMP_RET_ACTION_FULL, unix.Errno(end.Val&unix.SECCOMP_RET_DATA); {
		case action == unix.SECCOMP_RET_ERRNO && errno != unix.ENOSYS:
			changed[i] = report
		case action == unix.SECCOMP_RET_ALLOW && watched:
			changed[i] = bpf.Jump{Skip: uint32(len(program) - i - 1)}
		}
	}
	return changed
}

// watching reports the calls of the list, and allows all others. The kernel remembers which
// calls it allows whatever their arguments are, so that these cost nothing.
func watching(list []Watch) ([]bpf.Instruction, error) {
	if len(list) == 0 {
		return nil, nil
	}
	allow := bpf.RetConstant{Val: unix.SECCOMP_RET_ALLOW}
	tail := []bpf.Instruction{
		bpf.LoadAbsolute{Off: offArch, Size: wordBytes},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: nativeAuditArch[runtime.GOARCH], SkipTrue: 1},
		allow,
		bpf.LoadAbsolute{Off: offNumber, Size: wordBytes},
	}
	seen := map[string]bool{}
	for _, w := range list {
		number, exists := numberOf(w.Call)
		if seen[w.Call] || w.Argument > 5 {
			return nil, fmt.Errorf("cannot watch %s twice, or by argument %d", w.Call, w.Argument)
		}
		if seen[w.Call] = true; !exists {
			continue // another machine's
		}
		if w.Bits == 0 {
			tail = append(tail, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: 1}, report)
			continue
		}
		tail = append(tail, bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: uint32(number), SkipTrue: 4},
			bpf.LoadAbsolute{Off: offArguments + argBytes*uint32(w.Argument), Size: wordBytes},
			bpf.JumpIf{Cond: bpf.JumpBitsNotSet, Val: w.Bits, SkipTrue: 1}, report, allow)
	}
	return append(tail, allow), nil
}

// Answer is what the profile itself answers a call, exactly as the kernel would: it runs the
// program. args are the whole registers.
func (f *Filter) Answer(number int32, arch uint32, args [6]uint64) Decision {
	f.lock.Lock()
	answer, err := f.vm.Run(seccompData(uint32(number), arch, args))
	f.lock.Unlock()
	if err != nil {
		return Decision{Action: specs.ActKillProcess} // no program that NewVM accepted
	}
	value := uint32(answer)
	switch value & unix.SECCOMP_RET_ACTION_FULL {
	case unix.SECCOMP_RET_ALLOW:
		return Decision{Action: specs.ActAllow}
	case unix.SECCOMP_RET_LOG:
		return Decision{Action: specs.ActLog}
	case unix.SECCOMP_RET_TRAP:
		return Decision{Action: specs.ActTrap}
	case unix.SECCOMP_RET_ERRNO:
		return Decision{specs.ActErrno, unix.Errno(value & unix.SECCOMP_RET_DATA)}
	case unix.SECCOMP_RET_KILL_THREAD:
		return Decision{Action: specs.ActKillThread}
	}
	return Decision{Action: specs.ActKillProcess}
}

// seccompData lays out struct seccomp_data as a little-endian kernel does, but each word
// big-endian: the interpreter reads packets in network order.
func seccompData(number, arch uint32, args [6]uint64) []byte {
	data := binary.BigEndian.AppendUint32(make([]byte, 0, 64), number)
	data = binary.BigEndian.AppendUint32(data, arch)
	data = binary.BigEndian.AppendUint64(data, 0) // instruction pointer
	for _, arg := range args {
		data = binary.BigEndian.AppendUint32(data, uint32(arg))
		data = binary.BigEndian.AppendUint32(data, uint32(arg>>32))
	}
	return data
}

// NameOf is the name of a native call, or "call 999".
func NameOf(number int32) string {
	if name, known := names()[number]; known {
		return name
	}
	return fmt.Sprintf("call %d", number)
}

var names = sync.OnceValue(func() map[int32]string {
	table := map[int32]string{}
	for name, number := range numbers() {
		table[number] = name
	}
	return table
})

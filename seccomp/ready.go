package seccomp

import (
	"crypto/sha256"
	"embed"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"runtime"

	"github.com/opencontainers/runtime-spec/specs-go"
	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// ready are the programs of the built-in profiles as libseccomp makes them, which takes
// milliseconds that each start of a run would pay. A test makes them anew and compares. Each
// file is named after the digest of its profile.
//
//go:embed ready
var ready embed.FS

// programOf compiles a profile, unless its program is there already.
func programOf(profile *specs.LinuxSeccomp) ([]bpf.Instruction, error) {
	name, err := readyName(profile)
	if err != nil {
		return nil, err
	}
	raw, err := ready.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist): // a user's own, or another architecture's
		return compileProfile(profile)
	case err != nil:
		return nil, err
	}
	return disassemble(raw)
}

// readyName is of everything that the program depends on.
func readyName(profile *specs.LinuxSeccomp) (string, error) {
	text, err := json.Marshal(profile)
	if err != nil {
		return "", err
	}
	digest := sha256.Sum256(append(text, runtime.GOARCH...))
	return "ready/" + hex.EncodeToString(digest[:]) + ".bpf", nil
}

// disassemble reads an array of struct sock_filter in this machine's byte order.
func disassemble(raw []byte) ([]bpf.Instruction, error) {
	program := make([]bpf.RawInstruction, len(raw)/unix.SizeofSockFilter)
	for i := range program {
		f := raw[i*unix.SizeofSockFilter:]
		program[i] = bpf.RawInstruction{Op: binary.NativeEndian.Uint16(f), Jt: f[2], Jf: f[3], K: binary.NativeEndian.Uint32(f[4:])}
	}
	instructions, ok := bpf.Disassemble(program)
	if !ok {
		return nil, errors.New("libseccomp exported an instruction that cannot be read back")
	}
	return instructions, nil
}

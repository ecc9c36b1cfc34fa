package linked

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
)

// Object is what a program or library says of the files that it needs.
type Object struct {
	Interpreter    string   // the loader; empty for a library and for a static program
	Needed         []string // names or paths of libraries
	RPath, RunPath []string // directories, with $ORIGIN as it is written
}

// ErrNoObject means that a file is no program or library of this machine.
var ErrNoObject = errors.New("it is no program of this machine")

// Bounds of one object. The largest ones of a Debian system have a tenth of them.
const (
	headersMost = 512
	dynamicMost = 64 << 10 // bytes of the table
	neededMost  = 1024
	textMost    = 4096 // PATH_MAX
)

// machines are those that clove runs on, by Go's name.
var machines = map[string]elf.Machine{"amd64": elf.EM_X86_64, "arm64": elf.EM_AARCH64}

// Read reads an object from its program headers.
func Read(file io.ReaderAt) (Object, error) {
	var head elf.Header64
	if err := fill(file, 0, &head); err != nil {
		return Object{}, ErrNoObject
	}
	kind := elf.Type(head.Type)
	switch {
	case !bytes.HasPrefix(head.Ident[:], []byte(elf.ELFMAG)),
		elf.Class(head.Ident[elf.EI_CLASS]) != elf.ELFCLASS64, elf.Data(head.Ident[elf.EI_DATA]) != elf.ELFDATA2LSB,
		kind != elf.ET_EXEC && kind != elf.ET_DYN,
		elf.Machine(head.Machine) != machines[runtime.GOARCH]:
		return Object{}, ErrNoObject
	case int(head.Phentsize) != binary.Size(elf.Prog64{}) || head.Phnum > headersMost:
		return Object{}, errors.New("its program headers are unusual")
	}
	headers := make([]elf.Prog64, head.Phnum)
	if err := fill(file, head.Phoff, headers); err != nil {
		return Object{}, fmt.Errorf("cannot read its program headers: %w", err)
	}
	o := object{file: file, headers: headers}
	return o.read()
}

// fill reads a value of a fixed size at an offset of the file.
func fill(file io.ReaderAt, offset uint64, value any) error {
	if offset > 1<<62 {
		return io.ErrUnexpectedEOF
	}
	return binary.Read(io.NewSectionReader(file, int64(offset), 1<<62-int64(offset)), binary.LittleEndian, value)
}

// object is one file while it is read.
type object struct {
	file    io.ReaderAt
	headers []elf.Prog64
}

func (o object) read() (found Object, err error) {
	for _, h := range o.headers {
		switch elf.ProgType(h.Type) {
		case elf.PT_INTERP:
			if h.Filesz > textMost {
				return found, errors.New("the name of its loader is too long")
			}
			if found.Interpreter, err = o.text(h.Off); err != nil {
				return found, fmt.Errorf("cannot read the name of its loader: %w", err)
			}
		case elf.PT_DYNAMIC:
			if err := o.dynamic(h, &found); err != nil {
				return found, err
			}
		}
	}
	return found, nil
}

// dynamic reads the table of the names that the loader looks for.
func (o object) dynamic(h elf.Prog64, found *Object) error {
	if h.Filesz > dynamicMost {
		return errors.New("its dynamic section is too long")
	}
	table := make([]elf.Dyn64, int(h.Filesz)/binary.Size(elf.Dyn64{}))
	if err := fill(o.file, h.Off, table); err != nil {
		return fmt.Errorf("cannot read its dynamic section: %w", err)
	}
	if end := slices.IndexFunc(table, func(d elf.Dyn64) bool { return elf.DynTag(d.Tag) == elf.DT_NULL }); end >= 0 {
		table = table[:end]
	}
	var names uint64 // address of the texts
	for _, d := range table {
		if elf.DynTag(d.Tag) == elf.DT_STRTAB {
			names = d.Val
		}
	}
	for _, d := range table {
		if err := o.name(d, names, found); err != nil {
			return err
		}
	}
	return nil
}

func (o object) name(d elf.Dyn64, table uint64, found *Object) error {
	tag := elf.DynTag(d.Tag)
	if tag != elf.DT_NEEDED && tag != elf.DT_RPATH && tag != elf.DT_RUNPATH {
		return nil
	}
	offset, loaded := o.offset(table + d.Val)
	if !loaded || len(found.Needed) == neededMost {
		return errors.New("its dynamic section is damaged")
	}
	text, err := o.text(offset)
	if err != nil {
		return fmt.Errorf("cannot read its dynamic section: %w", err)
	}
	switch tag {
	case elf.DT_NEEDED:
		found.Needed = append(found.Needed, text)
	case elf.DT_RPATH:
		found.RPath = strings.Split(text, ":")
	case elf.DT_RUNPATH:
		found.RunPath = strings.Split(text, ":")
	}
	return nil
}

// offset is where an address is in the file.
func (o object) offset(address uint64) (offset uint64, loaded bool) {
	for _, h := range o.headers {
		if elf.ProgType(h.Type) == elf.PT_LOAD && address >= h.Vaddr && address-h.Vaddr < h.Filesz {
			return h.Off + (address - h.Vaddr), true
		}
	}
	return 0, false
}

// text is a text that ends with a zero byte.
func (o object) text(offset uint64) (string, error) {
	if offset > 1<<62 {
		return "", io.ErrUnexpectedEOF
	}
	buffer := make([]byte, textMost+1)
	n, err := o.file.ReadAt(buffer, int64(offset))
	if end := bytes.IndexByte(buffer[:n], 0); end >= 0 {
		return string(buffer[:end]), nil
	}
	if err == nil || errors.Is(err, io.EOF) {
		err = errors.New("a name without an end")
	}
	return "", err
}

// ScriptInterpreter is the program that the first line of a script names, with the line's
// argument; ok is false for any other file.
func ScriptInterpreter(file io.ReaderAt) (program, argument string, ok bool) {
	head := make([]byte, 256) // BINPRM_BUF_SIZE of linux/binfmts.h
	n, _ := file.ReadAt(head, 0)
	line, found := bytes.CutPrefix(head[:n], []byte("#!"))
	if !found {
		return "", "", false
	}
	line, _, _ = bytes.Cut(line, []byte("\n"))
	program, argument, _ = strings.Cut(strings.Trim(string(line), " \t\x00"), " ")
	return program, strings.TrimSpace(argument), program != ""
}

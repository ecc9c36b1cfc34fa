package files

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// sparseBlock is the unit in which zeros count as a hole.
const sparseBlock = 4096

// HashSparse is a SHA-256 over the size of a file and the place and content of each block that
// is not zero. Where the file has holes does not matter, and they are not read.
func HashSparse(path string) (string, error) {
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer file.Close()
	size, err := file.Seek(0, io.SeekEnd)
	if err != nil {
		return "", err
	}
	sum, block, zeros := sha256.New(), make([]byte, sparseBlock), make([]byte, sparseBlock)
	fmt.Fprintf(sum, "%d\n", size)
	for at := int64(0); at < size; {
		data, err := file.Seek(at, unix.SEEK_DATA)
		if errors.Is(err, unix.ENXIO) {
			break // nothing but a hole follows
		}
		if err != nil {
			return "", err
		}
		at = max(at, data/sparseBlock*sparseBlock)
		n, err := file.ReadAt(block, at)
		if err != nil && err != io.EOF {
			return "", err
		}
		if !bytes.Equal(block[:n], zeros[:n]) {
			fmt.Fprintf(sum, "%d %d\n", at, n)
			sum.Write(block[:n])
		}
		at += sparseBlock
	}
	return hex.EncodeToString(sum.Sum(nil)), nil
}

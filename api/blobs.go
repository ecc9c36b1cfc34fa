package api

import "time"

// Blob names a body that is larger than BodyMost, or no JSON. It is kept apart, and named by its content.
type Blob struct {
	SHA256 string `json:"sha256"` // 64 hexadecimal digits
	Bytes  int64  `json:"bytes"`
}

// Bounds of blobs, in bytes. A part fits into a line as base64.
const (
	BlobMost     = 64 << 20
	BlobPartMost = BodyMost / 4 * 3
)

// BlobOpenParams begins an upload.
type BlobOpenParams struct {
	Bytes int64 `json:"bytes"` // of the whole blob, 1 to 64 MiB
	Keyed
}

// BlobOpenResult names the upload.
type BlobOpenResult struct {
	Upload string `json:"upload"`
}

// BlobWriteParams writes a part of an upload.
type BlobWriteParams struct {
	Upload string `json:"upload"`
	Offset int64  `json:"offset"` // of the part; not behind the end of what is written
	Data   []byte `json:"data"`   // at most 36 KiB, as base64
}

// Of is the upload that the parameters name.
func (p BlobWriteParams) Of() string { return p.Upload }

// BlobWriteResult says how much of the upload is written.
type BlobWriteResult struct {
	Written int64 `json:"written"` // bytes; the next part begins there
}

// BlobCloseParams ends an upload.
type BlobCloseParams struct {
	Upload string `json:"upload"`
	SHA256 string `json:"sha256,omitempty"` // what the digest must be; absent: anything
	Keyed
}

// BlobResult names a blob.
type BlobResult struct {
	Blob
}

// BlobTakeParams makes a blob of a file.
type BlobTakeParams struct {
	Path string `json:"path"` // absolute, as the agent sees it
	Keyed
}

// BlobAt names a blob that the caller may read.
type BlobAt struct {
	Blob string `json:"blob"` // its SHA-256
	// At is the key that refers to it, of a scope that runs share; absent: a message in the caller's mailbox
	// does, a key of its own run, a job that it holds, or an upload of its own.
	At *StatePath `json:"at,omitempty"`
	// Job is the id of one that refers to it and that the caller holds or has added; not with At.
	Job string `json:"job,omitempty"`
}

// Named is what the parameters name.
func (p BlobAt) Named() BlobAt { return p }

// BlobReadParams asks for a part of a blob.
type BlobReadParams struct {
	BlobAt
	Offset int64 `json:"offset,omitempty"` // of the part
}

// BlobReadResult is a part of a blob.
type BlobReadResult struct {
	Data       []byte `json:"data"` // at most 36 KiB, as base64
	Bytes      int64  `json:"bytes"`
	NextOffset int64  `json:"next_offset,omitempty"` // the offset of the next part; absent: this was the last
}

// BlobSaveParams writes a blob to a file.
type BlobSaveParams struct {
	BlobAt
	Path string `json:"path"` // absolute, as the agent sees it; nothing may be there
	Keyed
}

// BlobUploadParams begins an upload of a user's.
type BlobUploadParams struct {
	Owner *uint32 `json:"owner,omitempty"` // of the blob; absent: the caller; only root names another
	Bytes int64   `json:"bytes"`           // of the whole blob, 1 to 64 MiB
	Keyed
}

// BlobListParams asks for blobs of users.
type BlobListParams struct {
	Owner *uint32 `json:"owner,omitempty"` // absent: the caller's, for root all; only root names another
	After string  `json:"after,omitempty"` // where the last answer ended
}

// BlobListResult is a part of the blobs, in the order of their owners and digests.
type BlobListResult struct {
	Blobs []KeptBlob `json:"blobs"`
	Next  string     `json:"next,omitempty"` // what to ask with in After; empty: these were the last
}

// KeptBlob is a blob of an owner's. It is removed when nothing refers to it.
type KeptBlob struct {
	Owner      uint32    `json:"owner" col:"OWNER"`
	SHA256     string    `json:"sha256" col:"SHA256"`
	Bytes      int64     `json:"bytes" col:"BYTES"`
	References int       `json:"references" col:"REFERENCES"` // of messages, dead letters and keys, and of uploads of the last hour
	Made       time.Time `json:"made" col:"MADE,age"`
}

// BlobFetchParams asks a user's blob for a part.
type BlobFetchParams struct {
	Owner  *uint32 `json:"owner,omitempty"`  // absent: the caller; only root names another
	Blob   string  `json:"blob"`             // its SHA-256
	Offset int64   `json:"offset,omitempty"` // of the part
}

package blob

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"clove.run/clove/api"
	"clove.run/clove/store"
)

// Bounds of what an owner and a caller have.
const (
	OwnerMost   = 1 << 30 // bytes of an owner's blobs and uploads
	UploadsMost = 64      // of a caller, closed ones that have not expired included
)

// Row is a blob of an owner.
type Row struct {
	Owner uint32 `json:"owner"`
	api.Blob
	File string    `json:"file"`           // its name in the directory of blobs
	Refs int       `json:"refs,omitempty"` // the sum of its references
	Made time.Time `json:"made,omitzero"`
}

// reference is how often a holder refers to a blob.
type reference struct {
	Owner  uint32 `json:"owner"`
	SHA256 string `json:"sha256"`
	Holder string `json:"holder"`
	Count  int    `json:"count"`
}

// Used is what an owner's blobs and uploads take, in bytes.
type Used struct {
	Owner uint32 `json:"owner"`
	Bytes int64  `json:"bytes"`
}

// Upload is a blob in the making, or one that was made and that its maker may refer to until it expires.
type Upload struct {
	By      string    `json:"by"` // the caller, as the audit log has it
	ID      string    `json:"id"`
	Owner   uint32    `json:"owner"`
	Bytes   int64     `json:"bytes"`            // of the whole blob
	SHA256  string    `json:"sha256,omitempty"` // once it is closed
	Expires time.Time `json:"expires"`
}

// idle is the index of the blobs to which nothing refers, and its term.
const idle = "blobs_idle"

// The tables.
var (
	Rows = store.Table[Row]{
		Bucket: "blobs", Noun: "blob", Key: func(r *Row) string { return key(r.Owner, r.SHA256) },
		Sound: func(r *Row) error {
			if !IsDigest(r.SHA256) || r.Bytes <= 0 || r.Bytes > api.BlobMost || r.File == "" || r.Refs < 0 {
				return errors.New("it has no digest, no size or no file")
			}
			return nil
		},
		Indexes: []store.Index[Row]{{Bucket: idle, Terms: func(r *Row) []string {
			if r.Refs > 0 {
				return nil
			}
			return []string{idle}
		}}},
	}
	references = store.Table[reference]{
		Bucket: "blob_references", Noun: "reference to a blob", Key: func(r *reference) string { return holds(r.Owner, r.SHA256, r.Holder) },
		Sound: func(r *reference) error {
			if !IsDigest(r.SHA256) || r.Holder == "" || r.Count <= 0 {
				return errors.New("nothing refers, or it refers to nothing")
			}
			return nil
		},
	}
	Owners = store.Table[Used]{
		Bucket: "blob_owners", Noun: "use of blobs", Key: func(u *Used) string { return strconv.Itoa(int(u.Owner)) },
		Sound: func(u *Used) error {
			if u.Bytes < 0 || u.Bytes > OwnerMost {
				return errors.New("it counts what cannot be")
			}
			return nil
		},
	}
	Uploads = store.Table[Upload]{
		Bucket: "blob_uploads", Noun: "upload", Key: func(u *Upload) string { return u.By + "/" + u.ID },
		Sound: func(u *Upload) error {
			if u.By == "" || u.ID == "" || u.Bytes <= 0 || u.Bytes > api.BlobMost || u.Expires.IsZero() {
				return errors.New("it has no caller, no size or no end")
			}
			return nil
		},
		Bound: store.Bound[Upload]{Most: UploadsMost, Error: func(*Upload) error {
			return api.Failure(api.CodeBusy, "send them, or wait until some expire", "the caller has %d uploads", UploadsMost).By("", api.RuleBlobs)
		}},
	}
)

// Tables are those of the package.
func Tables() []store.Declared { return []store.Declared{Rows, references, Owners, Uploads} }

// Of is what the keys of an owner's blobs begin with.
func Of(owner uint32) string { return strconv.Itoa(int(owner)) + "/" }

func key(owner uint32, digest string) string { return Of(owner) + digest }

func holds(owner uint32, digest, holder string) string { return key(owner, digest) + "/" + holder }

// UploadsOf is the holder that the uploads of a caller are, who is as the audit log has it.
func UploadsOf(by string) string { return "upload/" + by }

// IsDigest reports whether a text has the form of a blob's name.
func IsDigest(text string) bool {
	for _, c := range text {
		if (c < '0' || c > '9') && (c < 'a' || c > 'f') {
			return false
		}
	}
	return len(text) == 64
}

// Find returns a blob of an owner; nil: there is none.
func Find(tx *store.KernelTx, owner uint32, digest string) (*Row, error) {
	if !IsDigest(digest) {
		return nil, nil
	}
	return Rows.Get(tx, key(owner, digest))
}

// Refer notes that a holder of the owner's refers to a blob; nil: to none.
func Refer(tx *store.KernelTx, owner uint32, holder string, b *api.Blob) error {
	if b == nil {
		return nil
	}
	row, err := Find(tx, owner, b.SHA256)
	if err == nil && row == nil {
		err = Missing(b.SHA256)
	}
	if err != nil {
		return err
	}
	r, err := references.Get(tx, holds(owner, b.SHA256, holder))
	if r == nil {
		r = &reference{Owner: owner, SHA256: b.SHA256, Holder: holder}
	}
	r.Count, row.Refs = r.Count+1, row.Refs+1
	return cmp.Or(err, references.Put(tx, r), Rows.Put(tx, row))
}

// Drop takes one reference of a holder back.
func Drop(tx *store.KernelTx, owner uint32, holder string, b *api.Blob) error {
	if b == nil {
		return nil
	}
	r, err := references.Get(tx, holds(owner, b.SHA256, holder))
	if err != nil || r == nil {
		return err
	}
	if r.Count--; r.Count == 0 {
		err = references.Delete(tx, references.Key(r))
	} else {
		err = references.Put(tx, r)
	}
	row, ferr := Find(tx, owner, b.SHA256)
	if row == nil {
		return cmp.Or(err, ferr)
	}
	row.Refs--
	return cmp.Or(err, ferr, Rows.Put(tx, row))
}

// Held returns a blob of an owner to which one of the holders refers; a holder that ends with "/" stands for
// all that begin with it. What there is not, and what none of them refers to, has the same answer.
func Held(tx *store.KernelTx, owner uint32, digest string, holders ...string) (*Row, error) {
	if !IsDigest(digest) {
		return nil, Missing(digest)
	}
	found := false
	for _, holder := range holders { // all of them: the time says nothing
		page, _, err := references.Page(tx, holds(owner, digest, holder), "", 1)
		if err != nil {
			return nil, err
		}
		found = found || len(page) > 0 && (page[0].Holder == holder || holder[len(holder)-1] == '/')
	}
	if !found {
		return nil, Missing(digest)
	}
	row, err := Find(tx, owner, digest)
	if err == nil && row == nil {
		err = Missing(digest)
	}
	return row, err
}

// Missing is the answer for a blob that the caller cannot refer to.
func Missing(digest string) error {
	return api.Failure(api.CodeNotFound, "name the SHA-256 of a message that is not acknowledged, of a key, or of an upload", "no blob %.64q", digest)
}

// Take takes bytes of an owner's room, before they are written; less than zero gives them back.
func Take(tx *store.KernelTx, owner uint32, bytes int64) error {
	u, err := Owners.Get(tx, strconv.Itoa(int(owner)))
	if u == nil {
		u = &Used{Owner: owner}
	}
	if err != nil {
		return err
	}
	if u.Bytes += bytes; u.Bytes > OwnerMost {
		return api.Failure(api.CodeBusy, "acknowledge messages and remove keys that have some", "the blobs of user %d would be %d bytes, more than %d", owner, u.Bytes, OwnerMost).By("", api.RuleBlobs)
	}
	if u.Bytes == 0 {
		return Owners.Delete(tx, Owners.Key(u))
	}
	return Owners.Put(tx, u)
}

// Idle returns the blobs to which nothing refers.
func Idle(tx *store.KernelTx) ([]*Row, error) { return Rows.Indexed(tx, idle, idle) }

// Remove removes a blob to which nothing refers, and gives its bytes back.
func Remove(tx *store.KernelTx, r *Row) (removed bool, err error) {
	now, err := Rows.Get(tx, Rows.Key(r))
	if err != nil || now == nil || now.Refs > 0 || now.File != r.File {
		return false, err
	}
	return true, cmp.Or(Rows.Delete(tx, Rows.Key(now)), Take(tx, now.Owner, -now.Bytes))
}

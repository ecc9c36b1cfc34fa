package blobs

import (
	"cmp"
	"context"
	"errors"
	"os"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/audit"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Bounds of uploads.
const (
	lasts     = time.Hour          // from the begin, and again from the end of an upload
	ownMost   = blob.OwnerMost / 4 // bytes of one caller's uploads: others of the owner's have room, too
	sweepTime = 5 * time.Second    // between two looks for what is to be removed
	expiry    = time.Minute        // between two looks for what has expired
)

func checkSize(bytes int64) error {
	if bytes <= 0 || bytes > api.BlobMost {
		return api.Failure(api.CodeTooLarge, "give its size", "a blob has 1 to %d bytes, not %d", api.BlobMost, bytes)
	}
	return nil
}

func (b *Blobs) open(c *service.Call, p api.BlobOpenParams) (result api.BlobOpenResult, out service.Outcome, err error) {
	return b.begun(c, c.Run.Owner.UID, p.Bytes)
}

func (b *Blobs) openUsers(c *service.Call, p api.BlobUploadParams) (result api.BlobOpenResult, out service.Outcome, err error) {
	owner, err := ownerOf(c, p.Owner)
	if err != nil {
		return result, out, err
	}
	result, out, err = b.begun(c, owner, p.Bytes)
	out.Owner = &owner
	return result, out, err
}

func (b *Blobs) begun(c *service.Call, owner uint32, bytes int64) (result api.BlobOpenResult, out service.Outcome, err error) {
	u, err := b.begin(c, owner, bytes)
	if err != nil {
		return result, out, err
	}
	out.About = budget.WriteBytes.Show(bytes)
	return api.BlobOpenResult{Upload: u.ID}, out, nil
}

// begin takes the room for an upload.
func (b *Blobs) begin(c *service.Call, owner uint32, bytes int64) (*blob.Upload, error) {
	if b.Dir == "" {
		return nil, unserved()
	}
	if err := checkSize(bytes); err != nil {
		return nil, err
	}
	u := &blob.Upload{By: c.Principal(), ID: string(agent.NewID()), Owner: owner, Bytes: bytes, Expires: c.Now.Add(lasts).UTC()}
	all, err := blob.Uploads.Below(c.Tx, u.By+"/")
	total := bytes
	for _, other := range all {
		total += other.Bytes
	}
	switch {
	case err != nil:
		return nil, err
	case c.Agent && total > ownMost:
		return nil, api.Failure(api.CodeBusy, "wait until some of them expire", "the uploads of the run would be %d bytes, more than %d", total, ownMost).By("", api.RuleBlobs)
	}
	return u, cmp.Or(blob.Take(c.Tx, owner, bytes), blob.Uploads.Put(c.Tx, u))
}

// findUpload finds an upload of the caller's that is open.
func findUpload[P any](named func(P) string) func(*service.Call, P) (*blob.Upload, service.Outcome, error) {
	return func(c *service.Call, p P) (*blob.Upload, service.Outcome, error) {
		u, err := openUpload(c, named(p))
		return u, service.Outcome{}, err
	}
}

func openUpload(c *service.Call, id string) (*blob.Upload, error) {
	if !agent.ID(id).Valid() {
		return nil, noUpload(id)
	}
	u, err := blob.Uploads.Get(c.Tx, c.Principal()+"/"+id)
	if err == nil && (u == nil || u.SHA256 != "" || !c.Now.Before(u.Expires)) {
		err = noUpload(id)
	}
	return u, err
}

func noUpload(id string) error {
	return api.Failure(api.CodeNotFound, "open one: it is closed once, and expires after an hour", "no upload %.64q is open", id)
}

// enter takes the file of an upload for one call.
func (b *Blobs) enter(id string) (leave func(), err error) {
	if _, used := b.inUse.LoadOrStore(id, true); used {
		return nil, api.Failure(api.CodeBusy, "ask again in a moment", "another call works on the upload")
	}
	return func() { b.inUse.Delete(id) }, nil
}

// write writes a part. It looks for the upload anew: it may have been closed, and its file be a blob.
func (b *Blobs) write(c *service.Call, p api.BlobWriteParams, u *blob.Upload) (result api.BlobWriteResult, err error) {
	if len(p.Data) > api.BlobPartMost {
		return result, api.Failure(api.CodeTooLarge, "write it in several parts", "a part has at most %d bytes", api.BlobPartMost)
	}
	leave, err := b.enter(u.ID)
	if err != nil {
		return result, err
	}
	defer leave()
	err = b.engine.Look(c.Caller, func(look *service.Call) error { u, err = openUpload(look, p.Upload); return err })
	if err == nil {
		result.Written, err = b.Dir.write(u, p)
	}
	return result, err
}

// closed is an upload whose file is whole, on the disk, and has its name.
type closed struct {
	upload *blob.Upload
	digest string
	file   string
	leave  func()
}

func (b *Blobs) prepareClose(c *service.Call, p api.BlobCloseParams) (done closed, err error) {
	leave, err := b.enter(p.Upload)
	if err != nil {
		return done, err
	}
	done.leave = leave
	defer func() {
		if err != nil {
			b.reopen(done)
		}
	}()
	err = b.engine.Look(c.Caller, func(look *service.Call) error { done.upload, err = openUpload(look, p.Upload); return err })
	if err == nil {
		err = b.whole(c.Context, &done, p.SHA256)
	}
	return done, err
}

// whole makes the file of an upload that of a blob. wanted is the digest that it must have; empty: any.
func (b *Blobs) whole(ctx context.Context, done *closed, wanted string) (err error) {
	select {
	case b.hashing <- struct{}{}: // one at a time: it takes a processor
		defer func() { <-b.hashing }()
	case <-ctx.Done():
		return ctx.Err()
	}
	if done.digest, err = b.Dir.sum(ctx, done.upload); err != nil {
		return err
	}
	if wanted != "" && wanted != done.digest {
		return api.Failure(api.CodeConflict, "write the parts again, or name no digest", "the SHA-256 of what was written is %s", done.digest)
	}
	// gofail: var blobWritten string
	// if err := failpoint(blobWritten, ""); err != nil { return err }

	done.file, err = b.Dir.name(done.upload, done.digest)
	// gofail: var blobNamed string
	// if err == nil { err = failpoint(blobNamed, "") }

	return err
}

// reopen takes the end of an upload back.
func (b *Blobs) reopen(done closed) {
	if done.file != "" {
		_ = os.Rename(b.Dir.at(done.file), b.Dir.part(done.upload.ID)) // else the next sweep does it
	}
	done.leave()
}

func (b *Blobs) close(c *service.Call, _ api.BlobCloseParams, done closed) (api.BlobResult, service.Outcome, error) {
	return b.become(c, done)
}

// become makes a blob of a file, unless the owner has the same content already.
func (b *Blobs) become(c *service.Call, done closed) (result api.BlobResult, out service.Outcome, err error) {
	u, err := blob.Uploads.Get(c.Tx, blob.Uploads.Key(done.upload))
	if err == nil && u == nil {
		err = noUpload(done.upload.ID) // its run has ended
	}
	if err != nil {
		return result, out, err
	}
	row, err := blob.Find(c.Tx, u.Owner, done.digest)
	switch {
	case err != nil:
		return result, out, err
	case row != nil:
		err = blob.Take(c.Tx, u.Owner, -u.Bytes)
		out.Durable = append(out.Durable, func() { _ = b.Dir.remove(done.file) }) // the next start does it again
	default:
		row = &blob.Row{Owner: u.Owner, Blob: api.Blob{SHA256: done.digest, Bytes: u.Bytes}, File: done.file, Made: c.Now.UTC()}
		err = blob.Rows.Put(c.Tx, row)
	}
	u.SHA256, u.Expires = done.digest, c.Now.Add(lasts).UTC()
	out.About, out.Owner = done.digest, &u.Owner
	out.Durable = append(out.Durable, done.leave)
	return api.BlobResult{Blob: row.Blob}, out, cmp.Or(err, blob.Uploads.Put(c.Tx, u), blob.Refer(c.Tx, u.Owner, blob.UploadsOf(u.By), &row.Blob))
}

// prepareTake copies a file of the agent's. Its size is known and paid for before it is written.
func (b *Blobs) prepareTake(c *service.Call, p api.BlobTakeParams) (done closed, err error) {
	if b.Dir == "" || b.Files == nil {
		return done, unserved()
	}
	size, err := b.Files.Size(c.Context, c.Run, p.Path)
	if err == nil {
		err = checkSize(size)
	}
	if err != nil {
		return done, err
	}
	if done.upload, err = b.paid(c.Caller, size); err != nil {
		return done, err
	}
	if done.leave, err = b.enter(done.upload.ID); err != nil {
		return done, err
	}
	if err = os.MkdirAll(string(b.Dir), 0o700); err == nil {
		err = b.Files.Take(c.Context, c.Run, p.Path, b.Dir.part(done.upload.ID), size)
	}
	if err == nil {
		err = b.whole(c.Context, &done, "")
	}
	if err != nil {
		b.giveUp(done)
	}
	return done, err
}

// paid begins an upload in a transaction of its own, with what it costs.
func (b *Blobs) paid(caller service.Caller, size int64) (u *blob.Upload, err error) {
	costs := budget.Amounts{budget.WriteBytes: size}
	err = service.As(b.engine, caller, "blob.take", func(c *service.Call) (out service.Outcome, err error) {
		if out, err = b.Ledger.Reserve(c, costs); err != nil || out.Refusal != nil {
			return out, err
		}
		if u, err = b.begin(c, c.Run.Owner.UID, size); err != nil {
			return out, err
		}
		settled, err := b.Ledger.Settle(c, costs)
		out.Add(settled)
		return out, err
	})
	return u, err
}

func (b *Blobs) take(c *service.Call, _ api.BlobTakeParams, done closed) (api.BlobResult, service.Outcome, error) {
	return b.become(c, done)
}

// giveUp takes a blob back that was begun, with its file. What it cost is spent.
func (b *Blobs) giveUp(done closed) {
	defer done.leave()
	err := b.engine.Update("blob", func(tx *store.KernelTx) error { return forget(tx, done.upload) })
	if err == nil { // else it expires
		_ = errors.Join(b.Dir.remove(done.upload.ID+partSuffix), b.Dir.remove(cmp.Or(done.file, done.upload.ID)))
	}
}

// forget removes an upload, with what it holds, unless it was closed meanwhile.
func forget(tx *store.KernelTx, u *blob.Upload) error {
	now, err := blob.Uploads.Get(tx, blob.Uploads.Key(u))
	if err != nil || now == nil || !now.Expires.Equal(u.Expires) {
		return err
	}
	if now.SHA256 != "" {
		err = blob.Drop(tx, now.Owner, blob.UploadsOf(now.By), &api.Blob{SHA256: now.SHA256})
	} else {
		err = blob.Take(tx, now.Owner, -now.Bytes)
	}
	return cmp.Or(err, blob.Uploads.Delete(tx, blob.Uploads.Key(now)))
}

// Forget removes the uploads that a run has made until a moment; zero: all. Their files go with a sweep.
func Forget(tx *store.KernelTx, run agent.ID, until time.Time) error {
	all, err := blob.Uploads.Below(tx, audit.PrincipalRun(run)+"/")
	for _, u := range all {
		if until.IsZero() || !u.Expires.Add(-lasts).After(until) {
			err = cmp.Or(err, forget(tx, u))
		}
	}
	return err
}

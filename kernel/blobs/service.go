package blobs

import (
	"context"
	"sync"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/kernel/budget"
	"clove.run/clove/kernel/service"
	"clove.run/clove/store"
)

// Files reads and writes files of agents, with the agents' rights.
type Files interface {
	// Size is that of a regular file, in bytes.
	Size(ctx context.Context, run agent.Run, path string) (int64, error)
	// Take copies a file, which must have so many bytes, to one of root's, which is made.
	Take(ctx context.Context, run agent.Run, path, to string, bytes int64) error
	// Give copies a file of root's to a path at which nothing is.
	Give(ctx context.Context, run agent.Run, from, path string) error
}

// Config is what the service works with.
type Config struct {
	Dir    Dir   // empty: there are none
	Files  Files // nil: no files of agents
	Ledger service.Ledger
	// Holders are those whose blobs the call's run may read.
	Holders func(c *service.Call) ([]string, error)
	// Covers is what a grant must cover for a key that a call names, and Holder the holder that the key is.
	Covers func(at api.StatePath) []string
	Holder func(c *service.Call, at api.StatePath) (string, error)
	// Job is the holder that a job is which the call's run may see.
	Job func(c *service.Call, id string) (string, error)
}

// Blobs is the service. Its methods may be called from many goroutines.
type Blobs struct {
	Config

	engine  *service.Engine
	inUse   sync.Map   // ids of uploads whose files are worked on
	sweeps  sync.Mutex // is held while files are removed, and by what must not meet that
	hashing chan struct{}
	wake    chan struct{}
	end     func()
}

// New returns a service.
func New(c Config) *Blobs {
	return &Blobs{Config: c, hashing: make(chan struct{}, 1), wake: make(chan struct{}, 1)}
}

// Service returns its methods.
func (b *Blobs) Service() *service.Service {
	cost := func(p api.BlobOpenParams) (budget.Amounts, error) {
		return budget.Amounts{budget.WriteBytes: p.Bytes}, checkSize(p.Bytes)
	}
	return service.New("blob", blob.Tables()...).On(
		service.Write(agents.BlobOpen, service.Stages[api.BlobOpenParams]{Costs: cost}, b.open),
		service.Fetch(agents.BlobWrite, service.Stages[api.BlobWriteParams]{}, findUpload(api.BlobWriteParams.Of), b.write),
		service.Prepared(agents.BlobClose, service.Stages[api.BlobCloseParams]{}, b.prepareClose, b.close, b.reopen),
		service.Prepared(agents.BlobTake, service.Stages[api.BlobTakeParams]{}, b.prepareTake, b.take, b.giveUp),
		service.Fetch(agents.BlobRead, reading(b, api.BlobReadParams.Named), b.find, b.read),
		service.Prepared(agents.BlobSave, reading(b, api.BlobSaveParams.Named), b.save, saved, nil),
		service.Write(methods.BlobUpload, service.Stages[api.BlobUploadParams]{}, b.openUsers),
		service.Fetch(methods.BlobPart, service.Stages[api.BlobWriteParams]{}, findUpload(api.BlobWriteParams.Of), b.write),
		service.Prepared(methods.BlobFinish, service.Stages[api.BlobCloseParams]{}, b.prepareClose, b.close, b.reopen),
		service.Read(methods.BlobList, service.Stages[api.BlobListParams]{}, list),
		service.Fetch(methods.BlobFetch, service.Stages[api.BlobFetchParams]{}, findUsers, b.fetch),
	)
}

// Serve begins with what the engine has, and removes what a kill has left; Close ends it.
func (b *Blobs) Serve(e *service.Engine) {
	b.engine = e
	b.startSweeps()
}

// Close waits for what is under way.
func (b *Blobs) Close() { b.end() }

// reading are the stages of what reads a blob: a key that is named needs its grant.
func reading[P any](b *Blobs, named func(P) api.BlobAt) service.Stages[P] {
	return service.Stages[P]{About: func(p P) string { return shortened(named(p).Blob) }, Covers: func(p P) []string {
		if at := named(p).At; at != nil {
			return b.Covers(*at)
		}
		return nil
	}}
}

// shortened is what the audit log has of a digest that may be anything.
func shortened(digest string) string {
	if !blob.IsDigest(digest) {
		return "no digest"
	}
	return digest
}

// Held returns a blob that a body of the call's may name, of an owner; nil: it names none. A user may name all
// of the owner's.
func (b *Blobs) Held(c *service.Call, owner uint32, digest string) (*api.Blob, error) {
	if digest == "" {
		return nil, nil
	}
	var row *blob.Row
	var err error
	if c.Agent {
		row, err = b.own(c, owner, digest)
	} else {
		row, err = ofOwner(c.Tx, owner, digest)
	}
	if err != nil {
		return nil, err
	}
	return &row.Blob, nil
}

// own is a blob that the call's agent may read without naming what refers to it.
func (b *Blobs) own(c *service.Call, owner uint32, digest string) (*blob.Row, error) {
	holders, err := b.Holders(c)
	if err != nil {
		return nil, err
	}
	return blob.Held(c.Tx, owner, digest, append(holders, blob.UploadsOf(c.Principal()))...)
}

// Path is the file of a blob of an owner's. It goes with the last reference.
func (b *Blobs) Path(owner uint32, digest string) (path string, err error) {
	err = b.engine.Read(func(tx *store.KernelTx) error {
		row, err := ofOwner(tx, owner, digest)
		if err == nil {
			path = b.Dir.at(row.File)
		}
		return err
	})
	return path, err
}

func ofOwner(tx *store.KernelTx, owner uint32, digest string) (*blob.Row, error) {
	row, err := blob.Find(tx, owner, digest)
	if err == nil && row == nil {
		err = blob.Missing(digest)
	}
	return row, err
}

// named is the blob that an agent's call may read.
func (b *Blobs) named(c *service.Call, at api.BlobAt) (*blob.Row, error) {
	var holder string
	var err error
	switch {
	case at.At != nil && at.Job != "":
		return nil, api.Failure(api.CodeParams, "omit one of them", "at and job each name what refers to the blob")
	case at.At != nil:
		holder, err = b.Holder(c, *at.At)
	case at.Job != "":
		holder, err = b.Job(c, at.Job)
	default:
		return b.own(c, c.Run.Owner.UID, at.Blob)
	}
	if err != nil {
		return nil, err
	}
	return blob.Held(c.Tx, c.Run.Owner.UID, at.Blob, holder)
}

func (b *Blobs) find(c *service.Call, p api.BlobReadParams) (row *blob.Row, out service.Outcome, err error) {
	row, err = b.named(c, p.BlobAt)
	return row, out, err
}

func (b *Blobs) read(_ *service.Call, p api.BlobReadParams, row *blob.Row) (api.BlobReadResult, error) {
	return b.Dir.read(row, p.Offset)
}

// ownerOf is the owner that a user means.
func ownerOf(c *service.Call, named *uint32) (uint32, error) {
	switch {
	case named == nil:
		return c.UID, nil
	case *named != c.UID && !c.Root():
		return 0, api.Failure(api.CodeDenied, "leave the owner out", "only root names another user").By("", api.RuleMethods)
	}
	return *named, nil
}

// blobsInPart bounds a part of a list.
const blobsInPart = 100

func list(c *service.Call, p api.BlobListParams) (result api.BlobListResult, out service.Outcome, err error) {
	owner, err := ownerOf(c, p.Owner)
	if err != nil {
		return result, out, err
	}
	below := blob.Of(owner)
	if c.Root() && p.Owner == nil {
		below = ""
	}
	page, next, err := blob.Rows.Page(c.Tx, below, p.After, blobsInPart)
	result.Blobs, result.Next = []api.KeptBlob{}, next
	for _, r := range page {
		result.Blobs = append(result.Blobs, api.KeptBlob{Owner: r.Owner, SHA256: r.SHA256, Bytes: r.Bytes, References: r.Refs, Made: r.Made})
	}
	return result, out, err
}

func findUsers(c *service.Call, p api.BlobFetchParams) (row *blob.Row, out service.Outcome, err error) {
	owner, err := ownerOf(c, p.Owner)
	if err == nil {
		row, err = ofOwner(c.Tx, owner, p.Blob)
	}
	return row, out, err
}

func (b *Blobs) fetch(_ *service.Call, p api.BlobFetchParams, row *blob.Row) (api.BlobReadResult, error) {
	return b.Dir.read(row, p.Offset)
}

// save writes a blob to a file of the agent's, before the transaction that records it.
func (b *Blobs) save(c *service.Call, p api.BlobSaveParams) (row *blob.Row, err error) {
	if b.Files == nil {
		return nil, unserved()
	}
	err = b.engine.Look(c.Caller, func(look *service.Call) error { row, err = b.named(look, p.BlobAt); return err })
	if err == nil {
		err = b.Files.Give(c.Context, c.Run, b.Dir.at(row.File), p.Path)
	}
	return row, err
}

func saved(_ *service.Call, _ api.BlobSaveParams, row *blob.Row) (api.BlobResult, service.Outcome, error) {
	return api.BlobResult{Blob: row.Blob}, service.Outcome{}, nil
}

// unserved refuses where no cloved runs.
func unserved() error {
	return api.Failure(api.CodeUnenforceable, agent.StartCloved(), "blobs are kept by cloved, which does not run")
}

package kernel

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/store"
)

// large is a content of so many bytes, and its digest.
func large(bytes int, seed byte) (content []byte, digest string) {
	content = make([]byte, bytes)
	for i := range content {
		content[i] = byte(i) ^ byte(i>>8) ^ seed
	}
	sum := sha256.Sum256(content)
	return content, hex.EncodeToString(sum[:])
}

// opened begins an upload of a run's.
func (p *post) opened(run agent.Run, bytes int) string {
	p.t.Helper()
	return answerOf[api.BlobOpenResult](p.t)(p.as(run, agents.BlobOpen.Name, api.BlobOpenParams{Bytes: int64(bytes)})).Upload
}

// written writes all parts of an upload.
func (p *post) written(run agent.Run, upload string, content []byte) {
	p.t.Helper()
	for at := 0; at < len(content); at += api.BlobPartMost {
		part := content[at:min(len(content), at+api.BlobPartMost)]
		if got := answerOf[api.BlobWriteResult](p.t)(p.as(run, agents.BlobWrite.Name, api.BlobWriteParams{Upload: upload, Offset: int64(at), Data: part})); got.Written != int64(at+len(part)) {
			p.t.Fatalf("%+v at %d", got, at)
		}
	}
}

// uploaded makes a blob of a run's.
func (p *post) uploaded(run agent.Run, content []byte) api.Blob {
	p.t.Helper()
	upload := p.opened(run, len(content))
	p.written(run, upload, content)
	return answerOf[api.BlobResult](p.t)(p.as(run, agents.BlobClose.Name, api.BlobCloseParams{Upload: upload})).Blob
}

// reads reads all parts of a blob as a run.
func (p *post) reads(run agent.Run, at api.BlobAt) (content []byte, err error) {
	for offset := int64(0); ; {
		text, err := p.as(run, agents.BlobRead.Name, api.BlobReadParams{BlobAt: at, Offset: offset})
		if err != nil {
			return nil, err
		}
		part := answerOf[api.BlobReadResult](p.t)(text, nil)
		content = append(content, part.Data...)
		if offset = part.Next; offset == 0 {
			return content, nil
		}
	}
}

// kept are the files in the directory of blobs, and what is counted of their owner.
func (p *post) kept() (files []string, bytes int64) {
	p.t.Helper()
	entries, err := os.ReadDir(filepath.Join(p.dir, "blobs"))
	if !errors.Is(err, fs.ErrNotExist) {
		must(p.t, err)
	}
	for _, e := range entries {
		files = append(files, e.Name())
	}
	must(p.t, p.engine.Read(func(tx *store.KernelTx) error {
		u, err := blob.Owners.Get(tx, "1000")
		if u != nil {
			bytes = u.Bytes
		}
		return err
	}))
	return files, bytes
}

// sound holds the store and the files against each other.
func (p *post) sound() {
	p.t.Helper()
	problems, err := p.Check()
	must(p.t, err)
	for _, problem := range problems {
		p.t.Error("check:", problem)
	}
}

// A message that names a blob brings it to its receiver, also across a restart, until it is acknowledged; then
// nothing of it is left once the upload has expired.
func TestABlobGoesWithItsMessage(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	content, digest := large(3<<20+17, 0)
	b := p.uploaded(p.run, content)
	if b.SHA256 != digest || b.Bytes != int64(len(content)) {
		t.Fatalf("%+v", b)
	}
	_, err := p.reads(p.other, api.BlobAt{Blob: digest})
	wantCode(t, err, api.CodeNotFound)
	sent := p.sent(api.MailSendParams{Body: json.RawMessage(`{"name":"report"}`), Blob: digest})
	p.close()
	p.open()
	p.attach(false)
	must(t, p.Attach(context.Background(), p.other, false, func(api.Standing) {}))
	got := answerOf[api.MailReceiveResult](t)(p.as(p.other, agents.MailReceive.Name, api.MailReceiveParams{})).Messages[0]
	if got.Blob == nil || *got.Blob != b || string(got.Body) != `{"name":"report"}` {
		t.Fatalf("%+v", got)
	}
	if read, err := p.reads(p.other, api.BlobAt{Blob: digest}); err != nil || !bytes.Equal(read, content) {
		t.Fatalf("%d bytes, %v", len(read), err)
	}
	p.sound()
	answerOf[api.MailAckResult](t)(p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{sent.ID}}))
	_, err = p.reads(p.other, api.BlobAt{Blob: digest})
	wantCode(t, err, api.CodeNotFound)
	if files, bytes := p.kept(); len(files) != 1 || bytes != b.Bytes {
		t.Errorf("%q, %d bytes: the sender's upload has not expired", files, bytes)
	}
	p.clock.Add(3601)
	must(t, p.blobs.Sweep())
	if files, bytes := p.kept(); len(files) != 0 || bytes != 0 {
		t.Errorf("%q, %d bytes are left", files, bytes)
	}
	_, err = p.reads(p.run, api.BlobAt{Blob: digest})
	wantCode(t, err, api.CodeNotFound)
}

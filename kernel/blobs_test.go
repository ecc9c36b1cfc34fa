package kernel

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/kernel/blobs"
	"clove.run/clove/kernel/lease"
	"clove.run/clove/kernel/service"
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
		if offset = part.NextOffset; offset == 0 {
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

// Parts come in their order, and one may come again. What is wrong with a part or with the end changes nothing.
func TestPartsOfUploads(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	content, digest := large(3*api.BlobPartMost, 1)
	upload := p.opened(p.run, len(content))
	write := func(upload string, at int, part []byte) error {
		_, err := p.asAgent(agents.BlobWrite.Name, api.BlobWriteParams{Upload: upload, Offset: int64(at), Data: part})
		return err
	}
	end := func(upload, wanted string) (api.BlobResult, error) {
		text, err := p.asAgent(agents.BlobClose.Name, api.BlobCloseParams{Upload: upload, SHA256: wanted})
		if err != nil {
			return api.BlobResult{}, err
		}
		return answerOf[api.BlobResult](t)(text, nil), nil
	}
	part := content[:api.BlobPartMost]
	wantCode(t, write(upload, len(part), part), api.CodeConflict) // the second comes first
	must(t, write(upload, 0, make([]byte, len(part))))            // control
	must(t, write(upload, 0, part))
	wantCode(t, write(upload, -1, part), api.CodeConflict)
	wantCode(t, write(upload, 2*len(part), part), api.CodeConflict)
	wantCode(t, write(upload, 10, content[:len(part)+1]), api.CodeTooLarge)
	_, err := end(upload, "")
	wantCode(t, err, api.CodeConflict) // it is not whole
	must(t, write(upload, len(part), content[len(part):2*len(part)]))
	must(t, write(upload, 2*len(part), content[2*len(part):]))
	wantCode(t, write(upload, len(content), []byte{0}), api.CodeTooLarge)
	_, other := large(1, 1)
	_, err = end(upload, other)
	wantCode(t, err, api.CodeConflict)
	if b, err := end(upload, digest); err != nil || b.SHA256 != digest {
		t.Errorf("%+v, %v", b, err)
	}
	for _, id := range []string{upload, "", "../" + upload, strings.Repeat("a", 16), digest + "." + upload} {
		wantCode(t, write(id, 0, part), api.CodeNotFound)
		_, err := end(id, "")
		wantCode(t, err, api.CodeNotFound)
	}
	if read, err := p.reads(p.run, api.BlobAt{Blob: digest}); err != nil || !bytes.Equal(read, content) {
		t.Errorf("%d bytes, %v", len(read), err)
	}
	for _, size := range []int64{0, -1, api.BlobMost + 1, 1 << 62} {
		_, err := p.asAgent(agents.BlobOpen.Name, api.BlobOpenParams{Bytes: size})
		wantCode(t, err, api.CodeTooLarge)
	}
	_, err = p.asAgent(agents.BlobRead.Name, api.BlobReadParams{BlobAt: api.BlobAt{Blob: digest}, Offset: int64(len(content)) + 1})
	wantCode(t, err, api.CodeParams)
	_, err = p.asAgent(agents.BlobRead.Name, api.BlobReadParams{BlobAt: api.BlobAt{Blob: digest}, Offset: -1})
	wantCode(t, err, api.CodeParams)
	p.sound()
}

// The same call of an agent that lost the answer ends an upload once.
func TestAnUploadEndsOnce(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	content, digest := large(100, 2)
	upload := p.opened(p.run, len(content))
	p.written(p.run, upload, content)
	end := api.BlobCloseParams{Upload: upload, Keyed: api.Keyed{Key: "end"}}
	for range 3 {
		if b := answerOf[api.BlobResult](t)(p.asAgent(agents.BlobClose.Name, end)); b.SHA256 != digest {
			t.Errorf("%+v", b)
		}
	}
	// Another's upload is as none.
	open := p.opened(p.run, 5)
	_, err := p.as(p.other, agents.BlobWrite.Name, api.BlobWriteParams{Upload: open, Data: []byte("12345")})
	wantCode(t, err, api.CodeNotFound)
	_, err = p.as(p.other, agents.BlobClose.Name, api.BlobCloseParams{Upload: open})
	wantCode(t, err, api.CodeNotFound)
	p.written(p.run, open, []byte("12345")) // control
	p.sound()
}

// The room of an owner is taken before a byte is written, is the same whatever others have, and comes back when
// nothing refers to what took it.
func TestTheRoomForBlobsIsBounded(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	p.config.Blobs = blobs.Dir(filepath.Join(p.dir, "blobs"))
	open := func(run agent.Run, bytes int64) error {
		_, err := p.as(run, agents.BlobOpen.Name, api.BlobOpenParams{Bytes: bytes})
		return err
	}
	for range 4 { // a quarter is one run's
		must(t, open(p.run, api.BlobMost))
	}
	wantCode(t, open(p.run, 1), api.CodeBusy)
	for range 3 {
		run := newRun(1000, agent.Kernel{Socket: true})
		must(t, p.Attach(context.Background(), run, true, func(api.Standing) {}))
		for range 4 {
			must(t, open(run, api.BlobMost))
		}
	}
	wantCode(t, open(p.other, 1), api.CodeBusy)
	upload := answerOf[api.BlobOpenResult](t)(p.Call(context.Background(), service.Caller{UID: 1001}, service.Request{Method: methods.BlobUpload.Name, Text: encode(api.BlobUploadParams{Bytes: 1})}))
	if files, bytes := p.kept(); len(files) != 0 || bytes != blob.OwnerMost || upload.Upload == "" {
		t.Errorf("%q, %d bytes", files, bytes)
	}
	p.clock.Add(3601)
	must(t, p.blobs.Sweep())
	must(t, open(p.other, api.BlobMost))
	p.sound()
	// And so is the number of a run's.
	for range blob.UploadsMost - 1 {
		must(t, open(p.other, 1))
	}
	wantCode(t, open(p.other, 1), api.CodeBusy)
}

// write_bytes is spent by what an upload says that it has, before it is written, and nothing is kept of one that is
// refused.
func TestAnUploadSpendsWriteBytes(t *testing.T) {
	t.Parallel()
	for _, atEnd := range []string{"refuse", "pause"} {
		r := newRig(t, agent.Kernel{Budgets: []string{"write_bytes=1000"}, AtEnd: atEnd})
		p := &post{rig: r}
		p.opened(p.run, 600)
		_, err := p.asAgent(agents.BlobOpen.Name, api.BlobOpenParams{Bytes: 401})
		wantCode(t, err, api.CodeBudget)
		if _, bytes := p.kept(); bytes != 600 {
			t.Errorf("at_end %s: %d bytes are taken", atEnd, bytes)
		}
		if line := p.line("write_bytes"); line.Used != 600 || line.Reserved != 0 {
			t.Errorf("at_end %s: %+v", atEnd, line)
		}
		if atEnd == "refuse" {
			p.opened(p.run, 400)
		}
		p.sound()
	}
}

// The same content of two owners is two blobs: each has the room, and neither can find the other's.
func TestBlobsOfTwoOwners(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	stranger := newRun(1001, agent.Kernel{Socket: true})
	must(t, p.Attach(context.Background(), stranger, true, func(api.Standing) {}))
	content, digest := large(200_000, 3)
	_, err := p.reads(stranger, api.BlobAt{Blob: digest})
	wantCode(t, err, api.CodeNotFound)
	var both sync.WaitGroup
	for _, run := range []agent.Run{p.run, stranger, p.other} {
		both.Go(func() {
			upload, err := p.as(run, agents.BlobOpen.Name, api.BlobOpenParams{Bytes: int64(len(content))})
			var opened api.BlobOpenResult
			if err == nil {
				err = json.Unmarshal(upload, &opened)
			}
			for at := 0; at < len(content) && err == nil; at += api.BlobPartMost {
				_, err = p.as(run, agents.BlobWrite.Name, api.BlobWriteParams{Upload: opened.Upload, Offset: int64(at), Data: content[at:min(len(content), at+api.BlobPartMost)]})
			}
			if err == nil {
				_, err = p.as(run, agents.BlobClose.Name, api.BlobCloseParams{Upload: opened.Upload})
			}
			if err != nil {
				t.Error(err)
			}
		})
	}
	both.Wait()
	if files, bytes := p.kept(); len(files) != 2 || bytes != int64(len(content)) {
		t.Errorf("%q, %d bytes of the first owner: the content is there once for each", files, bytes)
	}
	p.sound()
	// What the first owner's runs do with theirs leaves the other's as it is.
	must(t, p.Happened(agent.RunEvent{Kind: agent.RunEnded, ID: p.run.Spec.ID, Owner: p.run.Owner, Time: p.config.Clock()}, ""))
	must(t, p.Happened(agent.RunEvent{Kind: agent.RunEnded, ID: p.other.Spec.ID, Owner: p.other.Owner, Time: p.config.Clock()}, ""))
	must(t, p.blobs.Sweep())
	if files, bytes := p.kept(); len(files) != 1 || bytes != 0 {
		t.Errorf("%q, %d bytes", files, bytes)
	}
	if read, err := p.reads(stranger, api.BlobAt{Blob: digest}); err != nil || !bytes.Equal(read, content) {
		t.Errorf("%d bytes, %v", len(read), err)
	}
}

// A digest is no right: neither to read, nor to send on, nor to keep, whoever's it is; and the answer is that for
// one which there is not. The controls have a message, a key, or an upload.
func TestADigestIsNoRight(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	has := agent.Kernel{Grants: []string{"send:critic", "state:/namespace/open:rw", "state:/namespace/secret:rw"}, Namespace: "acme", Socket: true}
	holder, poor := newRun(1000, has), newRun(1000, agent.Kernel{Grants: []string{"send:critic", "state:/namespace/open:rw"}, Namespace: "acme", Socket: true})
	beside := newRun(1000, agent.Kernel{Grants: has.Grants, Namespace: "other", Socket: true})
	stranger := newRun(1001, has)
	for i, run := range []*agent.Run{&holder, &poor, &beside, &stranger} {
		run.Spec.Name += string(rune('a' + i))
		must(t, p.Attach(context.Background(), *run, true, func(api.Standing) {}))
		p.runs.Store(run.Spec.ID, *run)
	}
	content, digest := large(100_000, 4)
	_, missing := large(100_000, 5)
	p.uploaded(holder, content)
	secret := api.StatePath{StateWhere: api.StateWhere{Scope: api.StateNamespace}, Path: "secret/a"}
	open := api.StatePath{StateWhere: api.StateWhere{Scope: api.StateNamespace}, Path: "open/a"}
	_, err := p.as(holder, agents.StateSet.Name, api.StateSetParams{StatePath: secret, Blob: digest})
	must(t, err)
	attempts := map[string]func(run agent.Run, digest string) error{
		"read": func(run agent.Run, digest string) error { _, err := p.reads(run, api.BlobAt{Blob: digest}); return err },
		"save": func(run agent.Run, digest string) error {
			_, err := p.as(run, agents.BlobSave.Name, api.BlobSaveParams{BlobAt: api.BlobAt{Blob: digest}, Path: "/workspace/a"})
			return err
		},
		"a key that may be read": func(run agent.Run, digest string) error {
			_, err := p.reads(run, api.BlobAt{Blob: digest, At: &open})
			return err
		},
		"send": func(run agent.Run, digest string) error {
			_, err := p.as(run, agents.MailSend.Name, api.MailSendParams{To: string(run.Spec.ID), Blob: digest})
			return err
		},
		"keep": func(run agent.Run, digest string) error {
			_, err := p.as(run, agents.StateSet.Name, api.StateSetParams{StatePath: api.StatePath{Path: "mine"}, Blob: digest})
			return err
		},
	}
	for name, attempt := range attempts {
		for _, run := range []agent.Run{poor, beside, stranger} {
			if name == "save" && p.files == nil || name == "send" {
				continue // below
			}
			refused, absent := attempt(run, digest), attempt(run, missing)
			if refused == nil || absent == nil {
				t.Fatalf("%s of %s: %v, %v", name, run.Spec.Name, refused, absent)
			}
			a, b := api.ErrorOf(refused), api.ErrorOf(absent)
			if a.Code != api.CodeNotFound || strings.ReplaceAll(a.Message, digest, missing) != b.Message || a.Data.Hint != b.Data.Hint || a.Data.Rule != b.Data.Rule {
				t.Errorf("%s of %s: %+v, and %+v for one that there is not", name, run.Spec.Name, a, b)
			}
		}
	}
	// The key needs its grant, whatever it has.
	for _, run := range []agent.Run{poor, p.other} {
		_, err := p.reads(run, api.BlobAt{Blob: digest, At: &secret})
		wantCode(t, err, api.CodeDenied)
		_, err = p.reads(run, api.BlobAt{Blob: missing, At: &secret})
		wantCode(t, err, api.CodeDenied)
	}
	for _, run := range []agent.Run{beside, stranger} { // they have the grant, of another namespace
		_, err := p.reads(run, api.BlobAt{Blob: digest, At: &secret})
		wantCode(t, err, api.CodeNotFound)
	}
	_, err = p.as(p.run, agents.MailSend.Name, api.MailSendParams{To: "critic", Blob: digest})
	wantCode(t, err, api.CodeNotFound)
	// The controls.
	for _, at := range []api.BlobAt{{Blob: digest}, {Blob: digest, At: &secret}} {
		if read, err := p.reads(holder, at); err != nil || !bytes.Equal(read, content) {
			t.Errorf("control: %d bytes, %v", len(read), err)
		}
	}
	must(t, attempts["keep"](holder, digest))
	p.uploaded(p.run, content)
	p.sent(api.MailSendParams{Blob: digest})
	if read, err := p.reads(p.other, api.BlobAt{Blob: digest}); err != nil || !bytes.Equal(read, content) {
		t.Errorf("control: %d bytes, %v", len(read), err)
	}
	for _, wrong := range []string{"", "a", strings.ToUpper(digest), digest + "/", "../" + digest, digest[:63] + "/", strings.Repeat("\x00", 64)} {
		_, err := p.reads(p.other, api.BlobAt{Blob: wrong})
		wantCode(t, err, api.CodeNotFound)
	}
	p.sound()
}

// Users read and name blobs of their own, and root those of all.
func TestUsersBlobs(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	content, digest := large(100_000, 6)
	p.uploaded(p.run, content)
	fetch := func(uid uint32, owner *uint32) error {
		_, err := asks[api.BlobReadResult](p.rig, uid, methods.BlobFetch.Name, api.BlobFetchParams{Owner: owner, Blob: digest})
		return err
	}
	of := uint32(1000)
	must(t, fetch(1000, nil))
	must(t, fetch(0, &of))
	wantCode(t, fetch(1001, nil), api.CodeNotFound)
	wantCode(t, fetch(1001, &of), api.CodeDenied)
	wantCode(t, fetch(0, nil), api.CodeNotFound)
	_, err := asks[api.BlobOpenResult](p.rig, 1001, methods.BlobUpload.Name, api.BlobUploadParams{Owner: &of, Bytes: 1})
	wantCode(t, err, api.CodeDenied)
	listed := func(uid uint32, params api.BlobListParams) (all []string) {
		list, err := asks[api.BlobListResult](p.rig, uid, methods.BlobList.Name, params)
		must(t, err)
		for _, b := range list.Blobs {
			if b.Bytes != int64(len(content)) || b.References != 1 || !b.Made.Equal(p.config.Clock()) {
				t.Errorf("%+v", b)
			}
			all = append(all, fmt.Sprint(b.Owner, " ", b.SHA256))
		}
		return all
	}
	stranger := newRun(1001, agent.Kernel{Socket: true})
	must(t, p.Attach(context.Background(), stranger, true, func(api.Standing) {}))
	p.uploaded(stranger, content)
	one, two := "1000 "+digest, "1001 "+digest
	for _, c := range []struct {
		uid    uint32
		params api.BlobListParams
		want   []string
	}{{1000, api.BlobListParams{}, []string{one}}, {1001, api.BlobListParams{}, []string{two}}, {1002, api.BlobListParams{}, nil}, {0, api.BlobListParams{}, []string{one, two}}, {0, api.BlobListParams{Owner: &of}, []string{one}},
		{1001, api.BlobListParams{After: "1000/"}, []string{two}}, {1000, api.BlobListParams{After: "1000/~"}, nil}} {
		if got := listed(c.uid, c.params); !slices.Equal(got, c.want) {
			t.Errorf("user %d, %+v: %q, want %q", c.uid, c.params, got, c.want)
		}
	}
	_, err = asks[api.BlobListResult](p.rig, 1001, methods.BlobList.Name, api.BlobListParams{Owner: &of})
	wantCode(t, err, api.CodeDenied)
	// One that a user uploads, and posts.
	opened, err := asks[api.BlobOpenResult](p.rig, 0, methods.BlobUpload.Name, api.BlobUploadParams{Owner: &of, Bytes: 3})
	must(t, err)
	for _, uid := range []uint32{1000, 1001} {
		_, err = asks[api.BlobWriteResult](p.rig, uid, methods.BlobPart.Name, api.BlobWriteParams{Upload: opened.Upload, Data: []byte("abc")})
		wantCode(t, err, api.CodeNotFound)
	}
	_, err = asks[api.BlobWriteResult](p.rig, 0, methods.BlobPart.Name, api.BlobWriteParams{Upload: opened.Upload, Data: []byte("abc")})
	must(t, err)
	made, err := asks[api.BlobResult](p.rig, 0, methods.BlobFinish.Name, api.BlobCloseParams{Upload: opened.Upload})
	must(t, err)
	_, err = asks[api.MailSendResult](p.rig, 1001, methods.MailPost.Name, api.MailPostParams{To: "critic", Blob: made.SHA256})
	wantCode(t, err, api.CodeNotFound)
	_, err = asks[api.MailSendResult](p.rig, 0, methods.MailPost.Name, api.MailPostParams{Owner: &of, To: "critic", Blob: made.SHA256})
	must(t, err)
	if read, err := p.reads(p.other, api.BlobAt{Blob: made.SHA256}); err != nil || string(read) != "abc" {
		t.Errorf("%q, %v", read, err)
	}
	p.sound()
}

// A blob stays for as long as one of its references does, whatever happens to the messages and the keys.
func TestReferencesFollowTheirRows(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	content, digest := large(100_000, 7)
	p.uploaded(p.run, content)
	there := func(want bool) {
		t.Helper()
		must(t, p.blobs.Sweep())
		p.sound()
		if files, _ := p.kept(); len(files) == 1 != want {
			t.Fatalf("%q", files)
		}
	}
	key := api.StatePath{Path: "a"}
	set := func(params api.StateSetParams) {
		t.Helper()
		params.StatePath = key
		_, err := p.asAgent(agents.StateSet.Name, params)
		must(t, err)
	}
	rejected, expires := p.sent(api.MailSendParams{Blob: digest}), p.sent(api.MailSendParams{Blob: digest, ExpiresMS: 10_000})
	set(api.StateSetParams{Blob: digest, Value: json.RawMessage(`{"of":"a"}`)})
	set(api.StateSetParams{Blob: digest})
	got := answerOf[api.StateResult](t)(p.asAgent(agents.StateGet.Name, api.StateGetParams{StatePath: key}))
	if got.Blob == nil || got.Blob.SHA256 != digest || got.Bytes != int64(len(content)) || got.Value != nil {
		t.Errorf("%+v", got)
	}
	p.clock.Add(3601) // the upload and one message expire
	must(t, p.expireMail())
	there(true)
	answerOf[api.MailAckResult](t)(p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{rejected.ID}, Reject: "no"}))
	there(true)
	_, err := p.reads(p.other, api.BlobAt{Blob: digest})
	wantCode(t, err, api.CodeNotFound) // dead letters are the users'
	for _, letter := range []string{rejected.ID, expires.ID} {
		_, err := asks[api.Nothing](p.rig, 1000, methods.MailRequeue.Name, api.MailLetterParams{ID: letter})
		must(t, err)
	}
	if _, err := p.reads(p.other, api.BlobAt{Blob: digest}); err != nil {
		t.Error(err)
	}
	set(api.StateSetParams{Value: json.RawMessage(`1`)})
	there(true)
	answerOf[api.MailAckResult](t)(p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{rejected.ID}, Reject: "no"}))
	_, err = asks[api.Nothing](p.rig, 1000, methods.MailDiscard.Name, api.MailLetterParams{ID: rejected.ID})
	must(t, err)
	there(true)
	must(t, p.Happened(agent.RunEvent{Kind: agent.RunRemoved, ID: p.other.Spec.ID, Owner: p.other.Owner, Time: p.config.Clock()}, ""))
	there(false)
	for _, ends := range []func(){
		func() {
			_, err := p.asAgent(agents.StateDelete.Name, api.StateDeleteParams{StatePath: key})
			must(t, err)
		},
		func() {
			must(t, p.Happened(agent.RunEvent{Kind: agent.RunRemoved, ID: p.run.Spec.ID, Owner: p.run.Owner, Time: p.config.Clock()}, ""))
		},
	} {
		p.uploaded(p.run, content)
		set(api.StateSetParams{Blob: digest, ExpiresMS: 7200_000})
		p.clock.Add(3601)
		there(true)
		ends()
		there(false)
	}
}

// A call that takes a message out may pass its blob on in the same transaction.
func TestThenPassesABlobOn(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	content, digest := large(100_000, 8)
	p.uploaded(p.run, content)
	sent := p.sent(api.MailSendParams{Blob: digest})
	keep := func(digest string) api.MailAckParams {
		return api.MailAckParams{IDs: []string{sent.ID}, Then: []api.ThenCall{{Method: agents.StateSet.Name, Params: encode(api.StateSetParams{StatePath: api.StatePath{Path: "a"}, Blob: digest})}}}
	}
	_, missing := large(1, 8)
	_, err := p.as(p.other, agents.MailAck.Name, keep(missing))
	wantCode(t, err, api.CodeNotFound)
	p.sound()
	_, err = p.as(p.other, agents.MailAck.Name, keep(digest))
	must(t, err)
	p.sound()
	p.clock.Add(3601)
	must(t, p.blobs.Sweep())
	if read, err := p.reads(p.other, api.BlobAt{Blob: digest}); err != nil || !bytes.Equal(read, content) {
		t.Errorf("%d bytes, %v", len(read), err)
	}
}

// A copy of a message in another's mailbox has its own reference.
func TestEachCopyHasItsReference(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	content, digest := large(100_000, 9)
	p.uploaded(p.run, content)
	box := lease.RunBox(1000, p.other.Spec.ID)
	var sent []string
	for range 3 {
		sent = append(sent, p.sent(api.MailSendParams{Blob: digest}).ID)
	}
	name := lease.NameBox(1000, "", "kept")
	must(t, p.engine.Update("test", func(tx *store.KernelTx) error {
		_, err := lease.Move(tx, box, name, p.config.Clock(), func(m *lease.Message) bool { return m.ID == sent[1] })
		return err
	}))
	p.sound()
	answerOf[api.MailAckResult](t)(p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{sent[0]}}))
	p.sound()
	if _, err := p.reads(p.other, api.BlobAt{Blob: digest}); err != nil {
		t.Error(err)
	}
	answerOf[api.MailAckResult](t)(p.as(p.other, agents.MailAck.Name, api.MailAckParams{IDs: []string{sent[2]}}))
	_, err := p.reads(p.other, api.BlobAt{Blob: digest})
	wantCode(t, err, api.CodeNotFound)
	must(t, p.engine.Update("test", func(tx *store.KernelTx) error { return lease.Forget(tx, name) }))
	p.clock.Add(3601)
	must(t, p.blobs.Sweep())
	if files, bytes := p.kept(); len(files) != 0 || bytes != 0 {
		t.Errorf("%q, %d bytes", files, bytes)
	}
}

// A kill between the file and its transaction, or between the end of a row and of its file, leaves nothing behind,
// and takes nothing that is referred to.
func TestFilesThatAKillLeaves(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	dir := filepath.Join(p.dir, "blobs")
	content, digest := large(100_000, 10)
	p.uploaded(p.run, content)
	p.sent(api.MailSendParams{Blob: digest})
	half := p.opened(p.run, len(content))
	p.written(p.run, half, content[:10])
	named := p.opened(p.run, len(content))
	p.written(p.run, named, content)
	gone, lost := large(5, 11)
	p.uploaded(p.run, gone)
	p.close()
	must(t, os.Rename(filepath.Join(dir, named+".part"), filepath.Join(dir, digest+"."+named))) // before its transaction
	must(t, os.WriteFile(filepath.Join(dir, "0123456789abcdef.part"), []byte("x"), 0o600))
	must(t, os.WriteFile(filepath.Join(dir, ".clove-XYZ"), []byte("x"), 0o600))
	file, err := store.OpenKernel(filepath.Join(p.dir, "kernel.db"), patience, Tables()...)
	must(t, err)
	must(t, file.Update(func(tx *store.KernelTx) error { // the row has gone, and its file has not
		row, err := blob.Find(tx, 1000, lost)
		must(t, err)
		all, err := blob.Uploads.Below(tx, "")
		for _, u := range all {
			if u.SHA256 == lost {
				err = cmp.Or(err, blob.Uploads.Delete(tx, blob.Uploads.Key(u)), blob.Drop(tx, 1000, blob.UploadsOf(u.By), &row.Blob))
			}
		}
		_, removed := blob.Remove(tx, row)
		return cmp.Or(err, removed)
	}))
	must(t, file.Close())
	problems, err := File(filepath.Join(p.dir, "kernel.db")).CheckKernel()
	must(t, err)
	if len(problems) != 3 { // the three that no row names
		t.Errorf("%q", problems)
	}
	stray := filepath.Join(dir, "fedcba9876543210.part")
	must(t, os.Rename(filepath.Join(dir, "0123456789abcdef.part"), stray))
	if removed, err := File(filepath.Join(p.dir, "kernel.db")).SweepKernel(); err != nil || len(removed) != 3 {
		t.Errorf("%q, %v", removed, err)
	}
	must(t, os.WriteFile(stray, []byte("x"), 0o600))
	p.open()
	p.attach(false)
	must(t, p.Attach(context.Background(), p.other, false, func(api.Standing) {}))
	p.sound()
	files, _ := p.kept()
	if len(files) != 3 || !slices.Contains(files, named+".part") || !slices.Contains(files, half+".part") {
		t.Errorf("%q", files)
	}
	if read, err := p.reads(p.other, api.BlobAt{Blob: digest}); err != nil || !bytes.Equal(read, content) {
		t.Errorf("%d bytes, %v", len(read), err)
	}
	p.written(p.run, half, content) // it goes on
	answerOf[api.BlobResult](t)(p.asAgent(agents.BlobClose.Name, api.BlobCloseParams{Upload: half}))
	answerOf[api.BlobResult](t)(p.asAgent(agents.BlobClose.Name, api.BlobCloseParams{Upload: named}))
	p.sound()
	if files, _ := p.kept(); len(files) != 1 {
		t.Errorf("%q", files)
	}
}

// A file whose blob was removed without its row, or was changed in size, is reported.
func TestCheckFindsWhatIsWrongWithBlobs(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	content, _ := large(1000, 12)
	p.uploaded(p.run, content)
	p.sound()
	files, _ := p.kept()
	path := filepath.Join(p.dir, "blobs", files[0])
	for name, spoil := range map[string]func() error{
		"shorter": func() error { return os.Truncate(path, 10) },
		"gone":    func() error { return os.Remove(path) },
		"others":  func() error { return os.WriteFile(path, content, 0o600) },
	} {
		must(t, spoil())
		problems, err := p.Check()
		must(t, err)
		if len(problems) != 1 && name != "others" {
			t.Errorf("%s: %q", name, problems)
		}
		must(t, os.WriteFile(path, content, 0o600))
	}
	must(t, p.engine.Update("test", func(tx *store.KernelTx) error {
		return cmp.Or(blob.Take(tx, 1000, 7), blob.Refer(tx, 1000, "nothing", &api.Blob{SHA256: files[0][:64]}))
	}))
	problems, err := p.Check()
	must(t, err)
	if len(problems) != 2 {
		t.Errorf("%q", problems)
	}
	must(t, p.engine.Update("test", func(tx *store.KernelTx) error {
		return cmp.Or(blob.Take(tx, 1000, -7), blob.Drop(tx, 1000, "nothing", &api.Blob{SHA256: files[0][:64]}))
	}))
}

// A copy has all blobs that its kernel.db names, and is one that a Kernel opens.
func TestABackupHasTheBlobs(t *testing.T) {
	t.Parallel()
	p := newPost(t)
	to := filepath.Join(t.TempDir(), "copy")
	content, digest := large(100_000, 13)
	p.uploaded(p.run, content)
	p.sent(api.MailSendParams{Blob: digest})
	must(t, p.Backup(filepath.Join(to+"1")))
	if err := p.Backup(filepath.Join(to + "1")); err == nil {
		t.Error("a backup was written over another")
	}
	must(t, os.Mkdir(to+"2.blobs", 0o700))
	wantCode(t, p.Backup(to+"2"), api.CodeConflict)
	if _, err := os.Stat(to + "2"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("%v", err)
	}
	p.close()
	must(t, File(filepath.Join(p.dir, "kernel.db")).BackupKernel(to+"3"))
	for _, copied := range []string{to + "1", to + "3"} {
		must(t, cmp.Or(os.Remove(filepath.Join(p.dir, "kernel.db")), os.RemoveAll(filepath.Join(p.dir, "blobs"))))
		must(t, cmp.Or(os.Rename(copied, filepath.Join(p.dir, "kernel.db")), os.Rename(copied+".blobs", filepath.Join(p.dir, "blobs"))))
		p.open()
		p.attach(false)
		must(t, p.Attach(context.Background(), p.other, false, func(api.Standing) {}))
		p.sound()
		if read, err := p.reads(p.other, api.BlobAt{Blob: digest}); err != nil || !bytes.Equal(read, content) {
			t.Errorf("%d bytes, %v", len(read), err)
		}
		p.close()
	}
}

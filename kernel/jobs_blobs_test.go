package kernel

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"clove.run/clove/agent"
	"clove.run/clove/api"
	"clove.run/clove/api/agents"
	"clove.run/clove/api/methods"
	"clove.run/clove/kernel/blob"
	"clove.run/clove/store"
)

// hall is a queue with runs that add and claim, and blobs.
type hall struct {
	*post
	one, two *rig
}

func newHall(t *testing.T) *hall {
	t.Helper()
	r := newQueue(t, api.QueueAddParams{BackoffMS: 1000})
	return &hall{post: &post{rig: r}, one: r.works(1000, "", "one"), two: r.works(1000, "", "two")}
}

// there requires that so many files of blobs are there, which are what the rows say.
func (h *hall) there(want int) {
	h.t.Helper()
	must(h.t, h.blobs.Sweep())
	h.sound()
	if files, _ := h.kept(); len(files) != want {
		h.t.Fatalf("%q, want %d", files, want)
	}
}

// takes has a run claim a job that must be there.
func (h *hall) takes(by *rig) api.Job {
	h.t.Helper()
	job, found := by.claims()
	if !found {
		h.t.Fatal("no job")
	}
	return job
}

// counts is what a blob of user 1000 counts.
func (h *hall) counts(digest string, want int) {
	h.t.Helper()
	must(h.t, h.engine.Read(func(tx *store.KernelTx) error {
		row, err := blob.Find(tx, 1000, digest)
		if err == nil && (row == nil || row.Refs != want) {
			h.t.Errorf("%+v, want %d references", row, want)
		}
		return err
	}))
}

// A job's blob stays as long as the job, in all its states, and only the run that holds it reads it, and the one that
// added it, which also reads its result.
func TestABlobStaysWithItsJob(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	content, digest := large(200_000, 21)
	gives, given := large(100_000, 22)
	h.uploaded(h.run, content)
	added := answerOf[api.JobResult](t)(h.asAgent(agents.JobAdd.Name, api.JobAddParams{NewJob: api.NewJob{Queue: "builds", Body: json.RawMessage(`{"name":"a"}`), Blob: digest, Attempts: 2}})).Job
	h.counts(digest, 2)
	h.clock.Add(3601)
	h.there(1) // the upload is over
	reads := func(by *rig, at api.BlobAt, want []byte) {
		t.Helper()
		read, err := h.reads(by.run, at)
		if want == nil {
			wantCode(t, err, api.CodeNotFound)
		} else if err != nil || !bytes.Equal(read, want) {
			t.Errorf("%d bytes, %v", len(read), err)
		}
	}
	own, ofJob := api.BlobAt{Blob: digest}, api.BlobAt{Blob: digest, Job: added.ID}
	for _, at := range []api.BlobAt{own, ofJob} {
		reads(h.one, at, nil)
		reads(h.two, at, nil)
	}
	reads(h.rig, ofJob, content)
	job := h.takes(h.one)
	if job.Blob == nil || job.Blob.SHA256 != digest || job.Blob.Bytes != int64(len(content)) || string(job.Body) != `{"name":"a"}` {
		t.Fatalf("%+v", job)
	}
	h.counts(digest, 1)
	for _, at := range []api.BlobAt{own, ofJob} {
		reads(h.one, at, content)
		reads(h.two, at, nil) // of the same queue, and does not hold it
	}
	_, err := h.reads(h.one.run, api.BlobAt{Blob: digest, Job: added.ID, At: &api.StatePath{Path: "a"}})
	wantCode(t, err, api.CodeParams)
	_, err = h.one.asAgent(agents.JobFail.Name, api.JobFailParams{ID: job.ID, Why: "no"})
	must(t, err)
	h.there(1)
	reads(h.one, own, nil)
	h.later(2 * time.Second)
	_, err = h.one.asAgent(agents.JobFail.Name, api.JobFailParams{ID: h.takes(h.one).ID, Why: "no"}) // the last attempt
	must(t, err)
	if h.shows(job.ID).State != api.JobDead {
		t.Errorf("%+v", h.shows(job.ID))
	}
	h.there(1)
	h.counts(digest, 1)
	_, err = asks[api.JobResult](h.rig, 1000, methods.JobsRetry.Name, api.JobParams{ID: job.ID})
	must(t, err)
	h.there(1)
	h.counts(digest, 1)
	h.takes(h.two)
	h.uploaded(h.two.run, gives)
	kept := api.StatePath{Path: "kept"}
	then := []api.ThenCall{{Method: agents.StateSet.Name, Params: encode(api.StateSetParams{StatePath: kept, Blob: digest})}}
	_, err = h.two.asAgent(agents.JobComplete.Name, api.JobCompleteParams{ID: job.ID, Blob: given, Then: then})
	must(t, err)
	h.counts(digest, 2)
	h.clock.Add(3601)
	h.there(2)
	if done := h.shows(job.ID); done.State != api.JobDone || done.ResultBlob == nil || done.ResultBlob.SHA256 != given || done.Result != nil || done.Blob == nil {
		t.Errorf("%+v", done)
	}
	reads(h.rig, api.BlobAt{Blob: given, Job: job.ID}, gives)
	reads(h.rig, ofJob, content)
	reads(h.two, api.BlobAt{Blob: given}, nil)
	reads(h.two, api.BlobAt{Blob: given, Job: job.ID}, nil)
	reads(h.two, own, content) // its key
	for range 256 {            // the record of the job goes with the 256th behind it
		h.adds("next", api.NewJob{})
		h.completes(h.takes(h.rig).ID)
	}
	h.counts(digest, 1)
	h.there(1)
	_, err = h.two.asAgent(agents.StateDelete.Name, api.StateDeleteParams{StatePath: kept})
	must(t, err)
	h.there(0)
}

// Each way in which a job ends takes its reference back.
func TestABlobGoesWithItsJob(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	content, digest := large(100_000, 23)
	cancel := func(id string) {
		t.Helper()
		_, err := asks[api.JobResult](h.rig, 1000, methods.JobsCancel.Name, api.JobParams{ID: id})
		must(t, err)
	}
	for name, ends := range map[string]func(id string){
		"cancelled":  cancel,
		"held":       func(id string) { h.takes(h.one); cancel(id) },
		"a deadline": func(id string) { h.later(11 * time.Second); h.there(1); cancel(id) },
		"removed":    func(id string) { h.completes(h.takes(h.rig).ID); h.there(1); h.removes() },
	} {
		upload := h.uploaded(h.run, content)
		added := answerOf[api.JobResult](t)(h.asAgent(agents.JobAdd.Name, api.JobAddParams{NewJob: api.NewJob{Queue: "builds", Blob: upload.SHA256, DeadlineMS: 7_200_000}})).Job
		if name == "a deadline" {
			cancel(added.ID)
			added = answerOf[api.JobResult](t)(h.asAgent(agents.JobAdd.Name, api.JobAddParams{NewJob: api.NewJob{Queue: "builds", Blob: digest, DeadlineMS: 3_610_000}})).Job
		}
		h.clock.Add(3601)
		h.there(1)
		ends(added.ID)
		h.there(0)
	}
}

// removes removes the queue, and adds it again.
func (h *hall) removes() {
	h.t.Helper()
	_, err := asks[api.Nothing](h.rig, 1000, methods.QueueRemove.Name, api.QueueRemoveParams{Name: "builds"})
	must(h.t, err)
	_, err = asks[api.QueueResult](h.rig, 1000, methods.QueueAdd.Name, api.QueueAddParams{Name: "builds"})
	must(h.t, err)
}

// A job and a result name no blob that the caller may not read: the answer is that for one which there is not. The
// controls name their own.
func TestJobsNameNoOthersBlobs(t *testing.T) {
	t.Parallel()
	h := newHall(t)
	stranger := newRun(1001, agent.Kernel{Socket: true})
	must(t, h.Attach(context.Background(), stranger, true, func(api.Standing) {}))
	foreign, theirs := large(100_000, 24)
	mine, ours := large(100_000, 25)
	_, missing := large(1, 26)
	h.uploaded(stranger, foreign)
	h.uploaded(h.two.run, mine)
	h.adds("x", api.NewJob{})
	held := h.takes(h.one)
	asUser := func(uid uint32) func(string) error {
		return func(digest string) error {
			_, err := asks[api.JobResult](h.rig, uid, methods.JobsAdd.Name, api.JobsAddParams{Owner: new(uint32(1000)), NewJob: api.NewJob{Queue: "builds", Blob: digest}})
			return err
		}
	}
	add := func(by *rig) func(string) error {
		return func(digest string) error {
			_, err := by.asAgent(agents.JobAdd.Name, api.JobAddParams{NewJob: api.NewJob{Queue: "builds", Blob: digest}})
			return err
		}
	}
	complete := func(digest string) error {
		_, err := h.one.asAgent(agents.JobComplete.Name, api.JobCompleteParams{ID: held.ID, Blob: digest})
		return err
	}
	for name, attempt := range map[string]func(string) error{"add": add(h.one), "complete": complete, "user": asUser(1000), "root": asUser(0)} {
		absent := attempt(missing)
		for _, digest := range []string{theirs, ours, strings.ToUpper(ours), "x"} {
			if digest == ours && (name == "user" || name == "root") {
				continue // a user names all of their own
			}
			err := attempt(digest)
			wantCode(t, err, api.CodeNotFound)
			if a, b := api.ErrorOf(err), api.ErrorOf(absent); strings.ReplaceAll(a.Message, digest, missing) != b.Message || a.Data.Hint != b.Data.Hint || a.Data.Rule != b.Data.Rule {
				t.Errorf("%s: %+v, and %+v for one that there is not", name, a, b)
			}
		}
	}
	if job := h.shows(held.ID); job.State != api.JobHeld {
		t.Errorf("%+v", job)
	}
	h.sound()
	must(t, add(h.two)(ours))
	must(t, asUser(1000)(ours))
	must(t, asUser(0)(ours))
	h.uploaded(h.one.run, mine)
	must(t, complete(ours))
	h.sound()
}

// A run that is started for a job reads its blob from standard input, behind the line of its body, also where cloved
// was killed before it was queued.
func TestAStartedRunReadsTheBlobOfItsJob(t *testing.T) {
	t.Parallel()
	s := newShop(t, api.QueueAddParams{Concurrency: 4})
	h := &hall{post: &post{rig: s.rig}}
	content, digest := large(200_000, 27)
	h.uploaded(s.run, content)
	posts := func(body json.RawMessage) api.Job {
		result, err := asks[api.JobResult](s.rig, 1000, methods.JobsAdd.Name, api.JobsAddParams{NewJob: api.NewJob{Queue: "builds", Body: body, Blob: digest}})
		must(t, err)
		return result.Job
	}
	alone := posts(nil)
	got := func(line string) (id agent.ID) {
		s.until("a run with "+line, func() bool { id = s.working()[strings.TrimSpace(line+string(content))]; return id != "" })
		return id
	}
	run := got("")
	both := posts(json.RawMessage(`{"name": "a"}`))
	with := got("{\"name\":\"a\"}\n")
	s.over(run, *new(exited(0)))
	s.over(with, *new(exited(0)))
	s.until("both are done", func() bool { return s.shows(alone.ID).State == api.JobDone && s.shows(both.ID).State == api.JobDone })
	h.clock.Add(3601)
	h.there(1)
	// A blob whose file is not there fails the job, and not the queue.
	h.uploaded(s.run, content)
	files, _ := h.kept()
	must(t, os.Rename(filepath.Join(s.dir, "blobs", files[0]), filepath.Join(s.dir, "away")))
	lost := posts(nil)
	s.until("it is not started", func() bool { return s.shows(lost.ID).Why != "" })
	must(t, os.Rename(filepath.Join(s.dir, "away"), filepath.Join(s.dir, "blobs", files[0])))
	s.posts("builds", "after", api.NewJob{})
	s.starts("after")
}

package main

import (
	"clove.run/clove/api"
	"clove.run/clove/api/methods"
	"clove.run/clove/client"
	"clove.run/clove/rootfs"
)

// showApproval shows a question, and below one about changes the changed lines, if the files are still those of the question.
func showApproval() *call[api.ApprovalGetParams, api.ApprovalResult] {
	a := &call[api.ApprovalGetParams, api.ApprovalResult]{}
	var patches []rootfs.Change
	var unseen string // why there are none
	a.ask = func(_ *screen, l *line, d *client.Client, params api.ApprovalGetParams) (api.ApprovalResult, error) {
		r, err := client.Do(l.Context.Context, d, methods.ApprovalGet, params)
		if of := r.Approval.Changes; err == nil && of != nil && r.Approval.State == api.ApprovalWaits && !l.Bool(flagJSON) {
			seen, err := client.Each(l.Context.Context, d, methods.RunDiff, api.DiffParams{RunParams: api.RunParams{Run: string(r.Approval.Run)}, Paths: of.Paths, Contents: true}, collect(&patches))
			switch {
			case err != nil:
				unseen = "what changed in the files cannot be shown: " + printable(err.Error())
			case seen.Digest != of.Digest:
				unseen = "the files are not those of this question any more, and a yes to it is refused; or you may read more of the workspace than the run's owner, or less"
			}
		}
		return r, err
	}
	return a.shows(func(s *screen, l *line, r api.ApprovalResult) error {
		if err := showQuestion(s, l, r); err != nil || l.Bool(flagJSON) {
			return err
		}
		if unseen != "" {
			s.say("clove", cyan, unseen)
			return nil
		}
		return s.printPatches(ofWorkspace(patches))
	})
}

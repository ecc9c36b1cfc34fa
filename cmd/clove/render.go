package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/urfave/cli/v2"

	"clove.run/clove/agent"
	"clove.run/clove/deploy/kubernetes"
	"clove.run/clove/policies"
	"clove.run/clove/policies/host"
	"clove.run/clove/policies/resolve"
	"clove.run/clove/policies/settings"
)

const renderName = "render"

const (
	flagImage        = "image"
	flagNamespace    = "namespace"
	flagRuntimeClass = "runtime-class"
	flagSecret       = "env-secret"
)

const groupCluster = "in the cluster"

func renderCommand() command {
	return command{
		task: "run", usage: "print the Kubernetes Job that does what clove run would do",
		verbs: []verb{{line: "clove render kubernetes --image IMAGE [flags of run] SCRIPT [flags] [-- ARGS...]\n" +
			"clove render kubernetes --image IMAGE [flags of run] -- COMMAND [ARGS...]", act: by(renderJob), free: true}},
		description: "The script, or with --workspace all files of that directory, go into a ConfigMap. The cluster needs clove on its\n" +
			"nodes and a RuntimeClass for it (docs/kubernetes.md). The same line always prints the same text. A flag of run\n" +
			"that Kubernetes cannot hold is refused. Nothing is sent: clove render kubernetes … | kubectl apply -f -",
		flags: renderFlags(),
	}
}

// renderFlags are those of run and the cluster's own. The flags of run that have no
// counterpart there are hidden but still read, so that refuseLocal can say what to do
// instead.
func renderFlags() []cli.Flag {
	own := []cli.Flag{
		value(groupCluster, flagImage, "", "image that the agent's root is made of", ""),
		value(groupCluster, flagNamespace, "", "namespace of the Job", "kubectl's"),
		value(groupCluster, flagRuntimeClass, "", "RuntimeClass whose handler is clove-oci", "clove"),
		value(groupCluster, flagSecret, "", "Secret that has the values of variables named without one (-e KEY)", ""),
		jsonFlag("write one JSON list instead of YAML; errors too"),
	}
	// Here --namespace is the cluster's.
	theirs := slices.DeleteFunc(runFlags(), func(f cli.Flag) bool { return slices.Contains([]string{flagJSON, flagNamespace}, f.Names()[0]) })
	for _, f := range theirs {
		if insteadOf(f.Names()[0]) != "" {
			hide(f)
		}
	}
	return append(own, theirs...)
}

// hide removes a flag from the help; it is still parsed.
func hide(f cli.Flag) {
	switch f := f.(type) {
	case *cli.StringFlag:
		f.Hidden = true
	case *cli.StringSliceFlag:
		f.Hidden = true
	case *cli.BoolFlag:
		f.Hidden = true
	}
}

// renderJob prints objects and sends nothing: it needs no access to a cluster.
func renderJob(p program, c *cli.Context) error {
	args := c.Args().Slice()
	if len(args) == 0 || args[0] != "kubernetes" {
		return invalid("", "clove render kubernetes --image IMAGE agent.py", "name what to render for: kubernetes is the only choice")
	}
	h, err := p.host()
	if err != nil {
		return err
	}
	r, err := clusterRequestOf(c, args[1:], h)
	if err != nil {
		return err
	}
	run, err := r.clusterRun()
	if err != nil {
		return err
	}
	manifest, err := kubernetes.Render(run)
	if err != nil {
		return err
	}
	if p.json {
		return p.printJSON(manifest)
	}
	// On stderr: stdout goes to kubectl.
	if left := r.leftBehind(); left != "" {
		p.say("clove", cyan, left)
	}
	text, err := manifest.YAML()
	if err == nil {
		_, err = p.out.Write(text)
	}
	return err
}

// clusterRequest is a run that is being turned into a Job.
type clusterRequest struct {
	flags *cli.Context
	asked resolve.Request
	host  host.Host
	spec  agent.Spec
}

// clusterRequestOf builds the spec for a root that is an image's.
func clusterRequestOf(c *cli.Context, args []string, h host.Host) (*clusterRequest, error) {
	r := &clusterRequest{flags: c, asked: requestOf(c), host: h}
	r.asked.Set(settings.Namespace, "") // the flag of this name is the Job's
	var err error
	if r.asked.Script, r.asked.Args, err = splitArguments(args, c.String(flagEntry), h); err != nil {
		return nil, err
	}
	if resolve.IsManifest(r.asked.Script) {
		return nil, invalid("", "write the command and its flags in place of the file: clove manifest show "+r.asked.Script+" prints them", "a manifest cannot be rendered")
	}
	if err := cmp.Or(r.asked.CheckCommand(), refuseLocal(c)); err != nil {
		return nil, err
	}
	if r.spec, err = resolve.ImageSpec(r.asked, h); err != nil {
		return nil, err
	}
	if len(r.spec.Kernel.Asks) > 0 { // a policy, and --network ask, say so too
		return nil, invalid(settings.Asks, "write --network allowlist, and --allow what it may reach", "Kubernetes cannot enforce it: nothing there asks people")
	}
	// A Job must end some time.
	if r.spec.Restart.Policy == agent.RestartAlways {
		return nil, invalid(flagRestart, "make a Deployment of the Job's pod template", "a Job does not restart what has succeeded")
	}
	return r, nil
}

// notInCluster has every flag of run that is no setting and that Kubernetes cannot enforce, and
// what to do instead. The other flags become a part of the Job, but for settings with a hint of
// their own.
var notInCluster = map[string]string{
	flagOption:         "omit it: no pod's agent gains a privilege",
	flagInit:           "let the image begin with a program that reaps, such as tini",
	flagIDFile:         "kubectl get -o jsonpath={.metadata.uid} shows the Job's",
	flagShadow:         "try the policy with clove run on a machine first",
	flagLearn:          "learn the policy on a host of your own, and write what it says as flags",
	flagLearnNetwork:   "learn the policy on a host of your own, and write what it says as flags",
	flagLearnReads:     "learn the policy on a host of your own, and write what it says as flags",
	flagNetworkLog:     "refused targets stand in the exit record: --result",
	flagExplainNetwork: "clove run --explain-network shows the same rules",
	flagDelay:          "apply the Job later, or use a CronJob",
	flagClipboard:      "kubectl attach shows what the agent writes as it is",
	flagDebug:          "kubectl describe shows a pod's steps",
}

// insteadOf is what to do where Kubernetes cannot enforce a flag; empty: it can.
func insteadOf(flag string) string {
	if s := settings.Find(flag); s != nil {
		return s.Pod
	}
	return notInCluster[flag]
}

// refuseLocal refuses flags and values that would be lost: a limit that is dropped
// silently looks as if it held.
func refuseLocal(c *cli.Context) error {
	for _, f := range runFlags() {
		name := f.Names()[0]
		if hint := insteadOf(name); hint != "" && c.IsSet(name) {
			return invalid(name, hint, "Kubernetes cannot enforce it")
		}
	}
	python := c.String(settings.Python)
	switch profile := c.String(settings.Seccomp); {
	case c.String(flagImage) == "":
		return invalid(flagImage, "name one that has what the agent needs, for example --image python:3.13-slim", "an image is required: a node does not have this host's programs")
	case c.String(flagNetwork) == agent.NetworkHost:
		return invalid(flagNetwork, "write none, allowlist or public", "on a node no agent gets the host's network")
	case profile != "" && profile != "standard" && profile != agent.SeccompUnconfined:
		return invalid(settings.Seccomp, "put the profile on the nodes and write seccompProfile type Localhost into the Job", "Kubernetes has only standard and unconfined, not %q", profile)
	// A relative path would be resolved against this host's directory.
	case strings.Contains(python, "/") && !strings.HasPrefix(python, "/"):
		return invalid(settings.Python, "write its absolute path in the image, or its name", "%s is a path of this host, not of the image", python)
	case c.String(flagPolicy) != "" && c.String(flagPolicy) != policies.StandardName:
		return invalid(flagPolicy, "write what clove policy show --resolved lists as flags", "Kubernetes cannot hold all that a policy says")
	case strings.ContainsAny(c.String(flagImage), " \t\n"):
		return invalid(flagImage, "write REPOSITORY:TAG or REPOSITORY@DIGEST", "%q is no image", c.String(flagImage))
	}
	return nil
}

// clusterRun is the spec as package kubernetes takes it. It has no paths of this host
// any more: files were read, variables resolved.
func (r *clusterRequest) clusterRun() (kubernetes.Run, error) {
	for _, t := range r.spec.Files.Tmpfs {
		// An emptyDir is always 0777.
		if t.Mode != 0 && t.Mode != 0o777 {
			return kubernetes.Run{}, invalid(settings.Tmpfs, "omit mode", "in a pod everybody may write in %s", t.Target)
		}
	}
	run := kubernetes.Run{
		Stem: r.asked.Stem(), Image: r.flags.String(flagImage), Namespace: r.flags.String(flagNamespace), RuntimeClass: "clove",
		Secret: r.flags.String(flagSecret), Record: r.flags.String(flagResult),
	}
	if class := r.flags.String(flagRuntimeClass); class != "" {
		run.RuntimeClass = class
	}
	// Equal limits mean no swap, which is what Kubernetes gives a pod that has requests
	// equal to limits.
	if swap := r.spec.Limits.MemorySwapBytes; swap != r.spec.Limits.MemoryBytes {
		return run, invalid(settings.MemorySwap, "omit the flag: without swap is the default there too", "Kubernetes cannot give a pod a limited amount of swap")
	}
	var err error
	if run.Variables, err = r.clusterVariables(); err != nil {
		return run, err
	}
	if run.Content, err = r.clusterFiles(); err != nil {
		return run, err
	}
	run.Spec = r.spec
	// Its files are in Content now, and the path would make the Job's name depend on
	// this host.
	run.Spec.Files.Workspace = ""
	return run, nil
}

// leftBehind mentions files beside the script that are not part of the Job: a local run
// would show them.
func (r *clusterRequest) leftBehind() string {
	if r.asked.Script == "" || r.asked.Has(settings.Workspace) {
		return ""
	}
	// All but the script itself.
	others := countEntries(r.spec.Files.Workspace) - 1
	if others <= 0 {
		return ""
	}
	return fmt.Sprintf("only %s goes along; %d more in its folder stay here (--workspace FOLDER takes all)", r.asked.Script, others)
}

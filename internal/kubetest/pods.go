package kubetest

import (
	"errors"
	"fmt"
	"path"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/validation"

	"clove.run/clove/oci"
)

// checkPod finds errors that strict decoding does not: parts of the pod that do not match
// each other.
func checkPod(template corev1.PodTemplateSpec) error {
	_, err := oci.Parse(template.Annotations)
	problems := []error{err}
	report := func(format string, values ...any) { problems = append(problems, fmt.Errorf(format, values...)) }
	volumes := map[string]bool{}
	for _, v := range template.Spec.Volumes {
		if volumes[v.Name] || len(validation.IsDNS1123Label(v.Name)) > 0 {
			report("volume %q is there twice, or no name", v.Name)
		}
		volumes[v.Name] = true
	}
	containers := append(append([]corev1.Container{}, template.Spec.InitContainers...), template.Spec.Containers...)
	if len(template.Spec.Containers) == 0 {
		report("the pod has no container")
	}
	used := map[string]bool{}
	for _, c := range containers {
		if c.Image == "" || len(validation.IsDNS1123Label(c.Name)) > 0 {
			report("container %q has no image, or no name", c.Name)
		}
		for _, e := range c.Env {
			if len(validation.IsEnvVarName(e.Name)) > 0 {
				report("%q is no variable", e.Name)
			}
		}
		problems = append(problems, checkMounts(c, volumes, used), checkResources(c.Resources))
	}
	for name := range volumes {
		if !used[name] {
			report("nothing mounts volume %q", name)
		}
	}
	return errors.Join(problems...)
}

// checkMounts notes in used which volumes the container mounts.
func checkMounts(c corev1.Container, volumes, used map[string]bool) error {
	targets := map[string]bool{}
	for _, m := range c.VolumeMounts {
		if !volumes[m.Name] || !path.IsAbs(m.MountPath) || path.Clean(m.MountPath) != m.MountPath || targets[m.MountPath] {
			return fmt.Errorf("%s mounts %q at %q: no such volume, no such path, or twice", c.Name, m.Name, m.MountPath)
		}
		targets[m.MountPath], used[m.Name] = true, true
	}
	return nil
}

// checkResources: the server rejects a request above its limit.
func checkResources(r corev1.ResourceRequirements) error {
	for name, limit := range r.Limits {
		request, written := r.Requests[name]
		if written && request.Cmp(limit) > 0 || limit.Cmp(resource.Quantity{}) <= 0 {
			return fmt.Errorf("%s: request %s, limit %s", name, request.String(), limit.String())
		}
	}
	return nil
}

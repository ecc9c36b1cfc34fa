package kubetest

import (
	"bytes"
	"errors"
	"fmt"
	"io"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	nodev1 "k8s.io/api/node/v1"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	metavalidation "k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/serializer/json"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"k8s.io/apimachinery/pkg/util/yaml"
	sandboxv1beta1 "sigs.k8s.io/agent-sandbox/api/v1beta1"
)

// kinds are the API groups whose objects clove's manifests use.
func kinds() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	err := errors.Join(corev1.AddToScheme(scheme), batchv1.AddToScheme(scheme), appsv1.AddToScheme(scheme), nodev1.AddToScheme(scheme),
		sandboxv1beta1.AddToScheme(scheme))
	return scheme, err
}

// Decode returns the objects of a text with one or more YAML documents, or all errors in them.
func Decode(text []byte) ([]runtime.Object, error) {
	scheme, err := kinds()
	if err != nil {
		return nil, err
	}
	decoder := json.NewSerializerWithOptions(json.DefaultMetaFactory, scheme, scheme, json.SerializerOptions{Yaml: true, Strict: true})
	documents := yaml.NewDocumentDecoder(io.NopCloser(bytes.NewReader(text)))
	defer documents.Close()
	var objects []runtime.Object
	var problems []error
	for buffer := make([]byte, 4<<20); ; {
		n, err := documents.Read(buffer)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, err
		}
		object, _, err := decoder.Decode(buffer[:n], nil, nil)
		if err == nil {
			err = check(object)
		}
		if err != nil {
			problems = append(problems, fmt.Errorf("document %d: %w", len(objects)+len(problems)+1, err))
			continue
		}
		objects = append(objects, object)
	}
	if len(objects)+len(problems) == 0 {
		return nil, errors.New("there is no object in it")
	}
	return objects, errors.Join(problems...)
}

// check validates an object's metadata as the API server does, and its pod.
func check(object runtime.Object) error {
	named, isNamed := object.(metav1.ObjectMetaAccessor)
	if !isNamed {
		return fmt.Errorf("a %T has no name", object)
	}
	meta := named.GetObjectMeta()
	problems := validation.ValidateObjectMetaAccessor(meta, meta.GetNamespace() != "", validation.NameIsDNSLabel, field.NewPath("metadata"))
	template, has := podOf(object)
	if !has {
		return problems.ToAggregate()
	}
	problems = append(problems, metavalidation.ValidateLabels(template.Labels, field.NewPath("pod labels"))...)
	problems = append(problems, validation.ValidateAnnotations(template.Annotations, field.NewPath("pod annotations"))...)
	return errors.Join(problems.ToAggregate(), checkPod(template))
}

// podOf returns the pod that an object is or makes.
func podOf(object runtime.Object) (corev1.PodTemplateSpec, bool) {
	switch object := object.(type) {
	case *corev1.Pod:
		return corev1.PodTemplateSpec{ObjectMeta: object.ObjectMeta, Spec: object.Spec}, true
	case *batchv1.Job:
		return object.Spec.Template, true
	case *appsv1.DaemonSet:
		return object.Spec.Template, true
	case *sandboxv1beta1.Sandbox:
		template := object.Spec.PodTemplate
		return corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: template.ObjectMeta.Labels, Annotations: template.ObjectMeta.Annotations}, Spec: template.Spec}, true
	}
	return corev1.PodTemplateSpec{}, false
}

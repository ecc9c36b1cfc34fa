package kubernetes

// The fields of the API that are written. A pointer or slice that is nil, and
// an empty text, are left to the cluster's defaults; a false without omitempty is
// meant: the API's own default is true.
type (
	meta struct {
		Name        string            `json:"name,omitempty"`
		Namespace   string            `json:"namespace,omitempty"`
		Labels      map[string]string `json:"labels,omitempty"`
		Annotations map[string]string `json:"annotations,omitempty"`
	}

	configMap struct {
		APIVersion string            `json:"apiVersion"`
		Kind       string            `json:"kind"`
		Metadata   meta              `json:"metadata"`
		Immutable  bool              `json:"immutable"`
		Data       map[string]string `json:"data,omitempty"`
		BinaryData map[string][]byte `json:"binaryData,omitempty"`
	}

	job struct {
		APIVersion string  `json:"apiVersion"`
		Kind       string  `json:"kind"`
		Metadata   meta    `json:"metadata"`
		Spec       jobSpec `json:"spec"`
	}

	jobSpec struct {
		BackoffLimit            int32       `json:"backoffLimit"`
		ActiveDeadlineSeconds   *int64      `json:"activeDeadlineSeconds,omitempty"`
		TTLSecondsAfterFinished *int32      `json:"ttlSecondsAfterFinished,omitempty"`
		Template                podTemplate `json:"template"`
	}

	podTemplate struct {
		Metadata meta    `json:"metadata"`
		Spec     podSpec `json:"spec"`
	}

	podSpec struct {
		RuntimeClassName              string             `json:"runtimeClassName"`
		RestartPolicy                 string             `json:"restartPolicy"`
		TerminationGracePeriodSeconds int64              `json:"terminationGracePeriodSeconds"`
		AutomountServiceAccountToken  bool               `json:"automountServiceAccountToken"`
		EnableServiceLinks            bool               `json:"enableServiceLinks"`
		Hostname                      string             `json:"hostname,omitempty"`
		SecurityContext               podSecurityContext `json:"securityContext"`
		Containers                    []container        `json:"containers"`
		Volumes                       []volume           `json:"volumes"`
	}

	podSecurityContext struct {
		SeccompProfile seccompProfile `json:"seccompProfile"`
	}

	seccompProfile struct {
		Type string `json:"type"`
	}

	container struct {
		Name            string          `json:"name"`
		Image           string          `json:"image"`
		Command         []string        `json:"command"`
		WorkingDir      string          `json:"workingDir"`
		Env             []variable      `json:"env"`
		Resources       resources       `json:"resources"`
		SecurityContext securityContext `json:"securityContext"`
		Stdin           bool            `json:"stdin,omitempty"`
		TTY             bool            `json:"tty,omitempty"`
		VolumeMounts    []volumeMount   `json:"volumeMounts"`
	}

	variable struct {
		Name      string     `json:"name"`
		Value     string     `json:"value,omitempty"`
		ValueFrom *reference `json:"valueFrom,omitempty"`
	}

	reference struct {
		Field    *fieldPath `json:"fieldRef,omitempty"`
		Resource *resource  `json:"resourceFieldRef,omitempty"`
		Secret   *secretKey `json:"secretKeyRef,omitempty"`
	}

	fieldPath struct {
		FieldPath string `json:"fieldPath"`
	}

	resource struct {
		Resource string `json:"resource"`
	}

	secretKey struct {
		Name string `json:"name"`
		Key  string `json:"key"`
	}

	resources struct {
		Limits map[string]string `json:"limits"`
	}

	securityContext struct {
		AllowPrivilegeEscalation bool         `json:"allowPrivilegeEscalation"`
		Capabilities             capabilities `json:"capabilities"`
		ReadOnlyRootFilesystem   bool         `json:"readOnlyRootFilesystem,omitempty"`
		RunAsGroup               int64        `json:"runAsGroup"`
		RunAsNonRoot             bool         `json:"runAsNonRoot"`
		RunAsUser                int64        `json:"runAsUser"`
	}

	capabilities struct {
		Drop []string `json:"drop"`
	}

	volume struct {
		Name      string           `json:"name"`
		EmptyDir  *emptyDir        `json:"emptyDir,omitempty"`
		ConfigMap *configMapVolume `json:"configMap,omitempty"`
	}

	emptyDir struct {
		Medium    string `json:"medium,omitempty"`
		SizeLimit string `json:"sizeLimit,omitempty"`
	}

	configMapVolume struct {
		Name        string `json:"name"`
		DefaultMode int32  `json:"defaultMode"`
	}

	volumeMount struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
		SubPath   string `json:"subPath,omitempty"`
		ReadOnly  bool   `json:"readOnly,omitempty"`
	}
)

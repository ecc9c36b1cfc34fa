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

	// A ConfigMap, which holds the files of the workspace.
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
		// How many times the run is started again.
		BackoffLimit int32 `json:"backoffLimit"`
		// Of the whole Job, with all its starts.
		ActiveDeadlineSeconds *int64 `json:"activeDeadlineSeconds,omitempty"`
		// Absent: a finished Job stays until it is deleted.
		TTLSecondsAfterFinished *int32      `json:"ttlSecondsAfterFinished,omitempty"`
		Template                podTemplate `json:"template"`
	}

	podTemplate struct {
		Metadata meta    `json:"metadata"`
		Spec     podSpec `json:"spec"`
	}

	podSpec struct {
		RuntimeClassName              string `json:"runtimeClassName"`
		RestartPolicy                 string `json:"restartPolicy"`
		TerminationGracePeriodSeconds int64  `json:"terminationGracePeriodSeconds"`
		// false: an agent gets no credentials of the cluster.
		AutomountServiceAccountToken bool `json:"automountServiceAccountToken"`
		// false: the names and addresses of the namespace's services are not put into
		// its environment.
		EnableServiceLinks bool               `json:"enableServiceLinks"`
		Hostname           string             `json:"hostname,omitempty"`
		SecurityContext    podSecurityContext `json:"securityContext"`
		Containers         []container        `json:"containers"`
		Volumes            []volume           `json:"volumes"`
	}

	podSecurityContext struct {
		SeccompProfile seccompProfile `json:"seccompProfile"`
	}

	seccompProfile struct {
		Type string `json:"type"`
	}

	container struct {
		Name  string `json:"name"`
		Image string `json:"image"`
		// With Command and no args, the image's own entrypoint and arguments are not
		// used.
		Command         []string        `json:"command"`
		WorkingDir      string          `json:"workingDir"`
		Env             []variable      `json:"env"`
		Resources       resources       `json:"resources"`
		SecurityContext securityContext `json:"securityContext"`
		// For kubectl attach.
		Stdin        bool          `json:"stdin,omitempty"`
		TTY          bool          `json:"tty,omitempty"`
		VolumeMounts []volumeMount `json:"volumeMounts"`
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
		// The kubelet enforces these through the cgroup.
		Limits map[string]string `json:"limits"`
	}

	securityContext struct {
		// false sets no_new_privs.
		AllowPrivilegeEscalation bool         `json:"allowPrivilegeEscalation"`
		Capabilities             capabilities `json:"capabilities"`
		ReadOnlyRootFilesystem   bool         `json:"readOnlyRootFilesystem,omitempty"`
		RunAsGroup               int64        `json:"runAsGroup"`
		// The kubelet refuses to start the container as root, whatever the image says.
		RunAsNonRoot bool  `json:"runAsNonRoot"`
		RunAsUser    int64 `json:"runAsUser"`
	}

	capabilities struct {
		Drop []string `json:"drop"`
	}

	volume struct {
		Name      string           `json:"name"`
		EmptyDir  *emptyDir        `json:"emptyDir,omitempty"`
		ConfigMap *configMapVolume `json:"configMap,omitempty"`
	}

	// A directory that lives as long as the pod; "Memory" makes it a tmpfs.
	emptyDir struct {
		Medium    string `json:"medium,omitempty"`
		SizeLimit string `json:"sizeLimit,omitempty"`
	}

	configMapVolume struct {
		Name string `json:"name"`
		// In JSON a decimal number: there are no octal ones.
		DefaultMode int32 `json:"defaultMode"`
	}

	volumeMount struct {
		Name      string `json:"name"`
		MountPath string `json:"mountPath"`
		// One file of the volume. A file that is mounted so does not change when the
		// ConfigMap does.
		SubPath  string `json:"subPath,omitempty"`
		ReadOnly bool   `json:"readOnly,omitempty"`
	}
)

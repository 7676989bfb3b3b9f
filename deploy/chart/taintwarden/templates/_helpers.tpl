{{/*
Everything is called taintwarden, whatever the release is called: two operators in one cluster would act on the same
policies, and so helm refuses the second.
*/}}
{{- define "taintwarden.name" -}}
taintwarden
{{- end -}}

{{/* The labels that select the pods. The same as in deploy/base, so that they never have to change. */}}
{{- define "taintwarden.selector" -}}
app.kubernetes.io/name: {{ include "taintwarden.name" . }}
{{- end -}}

{{/* The labels of the webhook's pods. */}}
{{- define "taintwarden.webhookSelector" -}}
app.kubernetes.io/name: {{ include "taintwarden.name" . }}-webhook
{{- end -}}

{{- define "taintwarden.labels" -}}
{{ include "taintwarden.selector" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- with .Values.commonLabels }}
{{ toYaml . }}
{{- end }}
{{- end -}}

{{/* The metadata of a namespaced object. Arguments: the root, the name. */}}
{{- define "taintwarden.metadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
namespace: {{ $root.Release.Namespace }}
{{ include "taintwarden.clusterMetadata" . | trimPrefix (printf "name: %s\n" (index . 1)) }}
{{- end -}}

{{/* The metadata of an object of the cluster. Arguments: the root, the name. */}}
{{- define "taintwarden.clusterMetadata" -}}
{{- $root := index . 0 -}}
name: {{ index . 1 }}
labels:
  {{- include "taintwarden.labels" $root | nindent 2 }}
{{- with $root.Values.commonAnnotations }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "taintwarden.image" -}}
{{- $image := .Values.image -}}
{{- if $image.digest -}}
{{ $image.repository }}@{{ $image.digest }}
{{- else -}}
{{ $image.repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/*
A file of source/, which are links into the repository: the chart has no copy of its own that could get out of step.
`helm package` writes what they lead to. Where links are not kept (some Git clients on Windows, Flux' sources), the
chart has to be packaged before.
*/}}
{{- define "taintwarden.source" -}}
{{- $text := .root.Files.Get (printf "source/%s" .file) -}}
{{- if not (contains "apiVersion:" $text) -}}
{{- fail (printf "source/%s is missing: links of the chart were not followed. Run helm package deploy/chart/taintwarden in a full clone and install the archive" .file) -}}
{{- end -}}
{{ $text }}
{{- end -}}

{{/*
The rules of a role, as a map `rules`. Arguments: root, file (of source/), kind, name.
With cert-manager nothing is granted that would write a certificate.
*/}}
{{- define "taintwarden.rules" -}}
{{- $text := include "taintwarden.source" (dict "root" .root "file" .file) -}}
{{- $found := list -}}
{{- range splitList "\n---\n" $text -}}
{{- $document := fromYaml . -}}
{{- if and (eq $document.kind $.kind) (eq $document.metadata.name $.name) -}}
{{- range $document.rules -}}
{{- $rule := . -}}
{{- if eq $.root.Values.webhooks.certificates "cert-manager" -}}
{{- if has "admissionregistration.k8s.io" .apiGroups -}}{{- $rule = dict -}}{{- end -}}
{{- if has "secrets" .resources -}}{{- $rule = mergeOverwrite (deepCopy .) (dict "verbs" (list "get")) -}}{{- end -}}
{{- end -}}
{{- if $rule -}}{{- $found = append $found $rule -}}{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $found -}}
{{- fail (printf "source/%s has no %s %s" .file .kind .name) -}}
{{- end -}}
rules:
  {{- toYaml $found | nindent 2 }}
{{- end -}}

{{/* A service account. Arguments: root, name. */}}
{{- define "taintwarden.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  name: {{ .name }}
  namespace: {{ .root.Release.Namespace }}
  labels:
    {{- include "taintwarden.labels" .root | nindent 4 }}
  {{- with merge (dict) .root.Values.serviceAccount.annotations .root.Values.commonAnnotations }}
  annotations:
    {{- toYaml . | nindent 4 }}
  {{- end }}
automountServiceAccountToken: false # the deployment asks for it where it is needed
{{- end -}}

{{/* Binds a role to a service account. Arguments: root, kind (of the role), name (of the role), account. */}}
{{- define "taintwarden.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- $metadata := ternary "taintwarden.clusterMetadata" "taintwarden.metadata" (eq .kind "ClusterRole") }}
  {{- include $metadata (list .root .name) | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  - kind: ServiceAccount
    name: {{ .account }}
    namespace: {{ .root.Release.Namespace }}
{{- end -}}

{{/* Variables of both processes for /metrics over HTTPS. */}}
{{- define "taintwarden.metricsEnv" -}}
{{- if .Values.metrics.protected }}
- name: TAINTWARDEN_METRICS_PORT
  value: "8443"
{{- if .Values.metrics.certificateSecret }}
- name: TAINTWARDEN_METRICS_CERTIFICATE
  value: /metrics-certificate
{{- end }}
{{- end }}
{{- end -}}

{{/*
The volumes of a process, as a map `volumeMounts` and `volumes`. Arguments: root, volumes (name, path, and the source as
a volume has it).
*/}}
{{- define "taintwarden.volumes" -}}
{{- $volumes := .volumes -}}
{{- with .root.Values.metrics -}}
{{- if and .protected .certificateSecret -}}
{{- $secret := dict "secretName" .certificateSecret -}}
{{- $volumes = append $volumes (dict "name" "metrics-certificate" "path" "/metrics-certificate" "source" (dict "secret" $secret)) -}}
{{- end -}}
{{- end -}}
{{- $mounts := list -}}
{{- $sources := list -}}
{{- range $volumes -}}
{{- $mounts = append $mounts (dict "name" .name "mountPath" .path "readOnly" true) -}}
{{- $sources = append $sources (merge (dict "name" .name) .source) -}}
{{- end -}}
{{- toYaml (dict "volumeMounts" $mounts "volumes" $sources) -}}
{{- end -}}

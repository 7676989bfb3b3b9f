{{/*
Everything is called taintwarden, whatever the release is called: two operators in one cluster would act on the same
policies, and so helm refuses the second.
*/}}
{{- define "taintwarden.name" -}}
taintwarden
{{- end -}}

{{/*
What Deployments, and the budgets and network policies of their pods, are called. Labels, accounts, roles, Services and
the Lease keep their names: they are in selectors, rights and certificates. Arguments: root; name, that without overrides.
*/}}
{{- define "taintwarden.called" -}}
{{- $name := include "taintwarden.name" .root -}}
{{- $ours := $name -}}
{{- with .root.Values.nameOverride -}}{{- $ours = printf "%s-%s" $.root.Release.Name . -}}{{- end -}}
{{- with .root.Values.fullnameOverride -}}{{- $ours = . -}}{{- end -}}
{{ $ours }}{{ trimPrefix $name .name }}
{{- end -}}

{{/*
Our labels of every object. Pods have only `app.kubernetes.io/name: NAME`, which selects them: the same as in
deploy/base, so that it never has to change.
*/}}
{{- define "taintwarden.labels" -}}
app.kubernetes.io/name: {{ include "taintwarden.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{- end -}}

{{/*
The metadata of an object of the namespace. Arguments: root; name; then, as they are needed, labels and annotations
beside those of every object.
*/}}
{{- define "taintwarden.metadata" -}}
name: {{ .name }}
namespace: {{ .root.Release.Namespace }}
{{ include "taintwarden.marks" . }}
{{- end -}}

{{/* The same of an object of the cluster. */}}
{{- define "taintwarden.clusterMetadata" -}}
name: {{ .name }}
{{ include "taintwarden.marks" . }}
{{- end -}}

{{- define "taintwarden.marks" -}}
labels:
  {{- merge
    (include "taintwarden.labels" .root | fromYaml) (.labels | default dict) (.root.Values.commonLabels | default dict)
    | toYaml | nindent 2
  }}
{{- with merge (dict) (.annotations | default dict) (.root.Values.commonAnnotations | default dict) }}
annotations:
  {{- toYaml . | nindent 2 }}
{{- end }}
{{- end -}}

{{- define "taintwarden.image" -}}
{{- $image := .Values.image | default dict -}}
{{- $repository := required "image.repository is needed: the registry and name of the image" $image.repository -}}
{{- if $image.digest -}}
{{ $repository }}@{{ $image.digest }}
{{- else -}}
{{ $repository }}:{{ $image.tag | default .Chart.AppVersion }}
{{- end -}}
{{- end -}}

{{/*
A file of source/. `make reference` copies them from what the repository ships without the chart, and a test compares
them. Arguments: root, file.
*/}}
{{- define "taintwarden.source" -}}
{{- $text := .root.Files.Get (printf "source/%s" .file) | required (printf "source/%s is missing" .file) -}}
{{ $text }}
{{- end -}}

{{/*
A role. Arguments: root, file (of source/) that it is in, kind, name, and labels of its own if it has any; certificates:
where others than the process make these, nothing is granted that would write one.
*/}}
{{- define "taintwarden.role" -}}
{{- $text := include "taintwarden.source" (dict "root" .root "file" .file) -}}
{{- $rules := list -}}
{{- range splitList "\n---\n" $text -}}
{{- $document := fromYaml . -}}
{{- if and (eq $document.kind $.kind) (eq $document.metadata.name $.name) -}}
{{- range $document.rules -}}
{{- $rule := . -}}
{{- if has $.certificates (list "cert-manager" "external") -}}
{{- if has "secrets" .resources -}}{{- $rule = mergeOverwrite (deepCopy .) (dict "verbs" (list "get")) -}}{{- end -}}
{{- end -}}
{{- $rules = append $rules $rule -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if not $rules -}}
{{- fail (printf "source/%s has no %s %s" .file .kind .name) -}}
{{- end -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}
metadata:
  {{- include (ternary "taintwarden.clusterMetadata" "taintwarden.metadata" (eq .kind "ClusterRole")) . | nindent 2 }}
rules:
  {{- toYaml $rules | nindent 2 }}
{{- end -}}

{{/* Adds conditions to a selector of a webhook. Arguments: the webhook, the field, the selector with them. */}}
{{- define "taintwarden.narrow" -}}
{{- $webhook := index . 0 -}}
{{- $field := index . 1 -}}
{{- $more := index . 2 -}}
{{- $ours := index $webhook $field | default dict -}}
{{- $narrowed := dict -}}
{{- with merge (dict) ($ours.matchLabels | default dict) ($more.matchLabels | default dict) -}}
{{- $_ := set $narrowed "matchLabels" . -}}
{{- end -}}
{{- with concat ($ours.matchExpressions | default list) ($more.matchExpressions | default list) -}}
{{- $_ := set $narrowed "matchExpressions" . -}}
{{- end -}}
{{- $_ := set $webhook $field $narrowed -}}
{{- end -}}

{{/* The names of the service accounts. */}}
{{- define "taintwarden.account" -}}
{{ required "serviceAccount.name is needed: the operator's account" (.Values.serviceAccount).name }}
{{- end -}}
{{- define "taintwarden.webhookAccount" -}}
{{ required "webhooks.serviceAccountName is needed: the webhook's account" (.Values.webhooks).serviceAccountName }}
{{- end -}}

{{- define "taintwarden.extenderAccount" -}}
{{ required "schedulerExtender.serviceAccountName is needed: the extender's account" (.Values.schedulerExtender).serviceAccountName }}
{{- end -}}

{{- define "taintwarden.publisherAccount" -}}
{{ required "publisher.serviceAccountName is needed: the publisher's account" (.Values.publisher).serviceAccountName }}
{{- end -}}

{{/* The processes beside the operator that are called: by API servers, and by schedulers. As JSON: name, account. */}}
{{- define "taintwarden.served" -}}
{{- $name := include "taintwarden.name" . -}}
{{- $found := list -}}
{{- if (.Values.webhooks).enabled -}}
{{- $found = append $found (dict "name" (printf "%s-webhook" $name) "account" (include "taintwarden.webhookAccount" .)) -}}
{{- end -}}
{{- if (.Values.schedulerExtender).enabled -}}
{{- $account := include "taintwarden.extenderAccount" . -}}
{{- $found = append $found (dict "name" (printf "%s-scheduler-extender" $name) "account" $account) -}}
{{- end -}}
{{ toJson $found }}
{{- end -}}

{{/* Whether the Job lets API servers trust the webhooks: it needs an account and rights that are made with it. */}}
{{- define "taintwarden.trustJob" -}}
{{- with .Values.webhooks -}}
{{- if and .enabled .trustJob (ne .certificates "cert-manager") ($.Values.serviceAccount).create ($.Values.rbac).create -}}
true
{{- end -}}
{{- end -}}
{{- end -}}

{{/*
Values of the webhook's pods: what is null is the operator's. Arguments: root; own, the values of the webhook; names; into,
the dictionary that gets them.
*/}}
{{- define "taintwarden.asOperator" -}}
{{- range $name := .names -}}
{{- $own := index $.own $name -}}
{{- $_ := set $.into $name (ternary (index $.root.Values $name) $own (kindIs "invalid" $own)) -}}
{{- end -}}
{{- end -}}

{{/* A service account. Arguments: root, name. */}}
{{- define "taintwarden.serviceAccount" -}}
apiVersion: v1
kind: ServiceAccount
metadata:
  {{- include "taintwarden.metadata" (set . "annotations" (.root.Values.serviceAccount).annotations) | nindent 2 }}
automountServiceAccountToken: false # the deployment asks for it where it is needed
{{- end -}}

{{/* Binds a role to service accounts. Arguments: root, kind (of the role), name (of the role), accounts. */}}
{{- define "taintwarden.binding" -}}
apiVersion: rbac.authorization.k8s.io/v1
kind: {{ .kind }}Binding
metadata:
  {{- include (ternary "taintwarden.clusterMetadata" "taintwarden.metadata" (eq .kind "ClusterRole")) . | nindent 2 }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: {{ .kind }}
  name: {{ .name }}
subjects:
  {{- range .accounts }}
  - kind: ServiceAccount
    name: {{ . }}
    namespace: {{ $.root.Release.Namespace }}
  {{- end }}
{{- end -}}

{{/* A PodDisruptionBudget for the pods of one process. Arguments: root, name. */}}
{{- define "taintwarden.budget" -}}
apiVersion: policy/v1
kind: PodDisruptionBudget
metadata:
  {{- include "taintwarden.metadata" (dict "root" .root "name" (include "taintwarden.called" .)) | nindent 2 }}
spec:
  {{- $most := .root.Values.podDisruptionBudget.maxUnavailable }}
  {{- if kindIs "invalid" $most }}
  {{- fail "podDisruptionBudget.maxUnavailable is needed: a number or a percentage" }}
  {{- end }}
  maxUnavailable: {{ $most }}
  unhealthyPodEvictionPolicy: AlwaysAllow # a replica that is not ready must not hold up a drain
  selector:
    matchLabels:
      app.kubernetes.io/name: {{ .name }}
{{- end -}}

{{/* Where metrics are served: a port as a Service has it. Its name there, and that of the container's port. */}}
{{- define "taintwarden.metricsPort" -}}
{{- if (.Values.metrics).protected -}}
{name: https, port: 8443, targetPort: metrics}
{{- else -}}
{name: http, port: 8080, targetPort: http}
{{- end -}}
{{- end -}}

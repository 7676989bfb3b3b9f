{{/* A ServiceMonitor or PodMonitor. Arguments: root, kind, endpoints (the field with these), selector, values. */}}
{{- define "taintwarden.monitor" -}}
{{- $endpoint := dict "port" "http" -}}
{{- range $field := list "interval" "scrapeTimeout" -}}
{{- with index $.values $field -}}{{- $_ := set $endpoint $field . -}}{{- end -}}
{{- end -}}
{{- $spec := dict "selector" .selector .endpoints (list (merge $endpoint (.values.endpoint | default dict))) -}}
{{- $name := printf "%s-metrics" (include "taintwarden.name" .root) -}}
apiVersion: monitoring.coreos.com/v1
kind: {{ .kind }}
metadata:
  {{- $marks := dict "labels" .values.labels "annotations" .values.annotations }}
  {{- include "taintwarden.metadata" (merge (dict "root" .root "name" $name) $marks) | nindent 2 }}
spec:
  {{- merge $spec (.values.spec | default dict) | toYaml | nindent 2 }}
{{- end -}}

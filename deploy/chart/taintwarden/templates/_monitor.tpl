{{/*
A ServiceMonitor or PodMonitor. Arguments: root, kind, endpoints (the field with these), port (its name), selector,
values.
*/}}
{{- define "taintwarden.monitor" -}}
{{- $given := .values.endpoint | default dict -}}
{{- $endpoint := dict "port" .port -}}
{{- with .root.Values.metrics -}}
{{- if .protected -}}
{{- $_ := set $endpoint "scheme" "https" -}}
{{- if not (or $given.authorization $given.bearerTokenSecret $given.oauth2) -}}
{{- if ne $.kind "ServiceMonitor" -}}
{{- fail "podMonitor.endpoint.authorization is needed beside metrics.protected: the Secret of a token" -}}
{{- end -}}
{{- $file := $given.bearerTokenFile | default "/var/run/secrets/kubernetes.io/serviceaccount/token" -}}
{{- $_ := set $endpoint "bearerTokenFile" $file -}}
{{- end -}}
{{- if not $given.tlsConfig -}}
{{- /* Without a Secret each replica makes a certificate of its own. */ -}}
{{- $tls := dict "insecureSkipVerify" true -}}
{{- with .certificateSecret -}}
{{- $ca := dict "secret" (dict "name" . "key" "ca.crt") -}}
{{- $tls = dict "ca" $ca "serverName" (printf "taintwarden-metrics.%s.svc" $.root.Release.Namespace) -}}
{{- end -}}
{{- $_ := set $endpoint "tlsConfig" $tls -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- range $field := list "interval" "scrapeTimeout" -}}
{{- with index $.values $field -}}{{- $_ := set $endpoint $field . -}}{{- end -}}
{{- end -}}
{{- $spec := dict "selector" .selector .endpoints (list (merge $endpoint $given)) -}}
{{- $name := printf "%s-metrics" (include "taintwarden.name" .root) -}}
apiVersion: monitoring.coreos.com/v1
kind: {{ .kind }}
metadata:
  {{- $marks := dict "labels" .values.labels "annotations" .values.annotations }}
  {{- include "taintwarden.metadata" (merge (dict "root" .root "name" $name) $marks) | nindent 2 }}
spec:
  {{- merge $spec (.values.spec | default dict) | toYaml | nindent 2 }}
{{- end -}}

{{/*
The Deployment of a process. Arguments: root; name, also what selects its pods; account; process, the command that it
runs; values, those of the process; settings, the names of those that it knows; podFields and variables of its
environment, ports, volumes and volumeMounts of its own; image, if it has one of its own.
*/}}
{{- define "taintwarden.deployment" -}}
{{- $values := .values -}}
{{- $selector := dict "app.kubernetes.io/name" .name -}}
{{- $variables := .variables -}}
{{- range .settings -}}
{{- $value := index ($.root.Values.settings | default dict) . -}}
{{- if not (kindIs "invalid" $value) -}}
{{- $_ := set $variables (printf "TAINTWARDEN_%s" (snakecase . | upper)) $value -}}
{{- end -}}
{{- end -}}
{{- $ports := .ports -}}
{{- $volumes := .volumes -}}
{{- $mounts := .volumeMounts -}}
{{- with .root.Values.metrics -}}
{{- if .protected -}}
{{- $_ := set $ports "metrics" 8443 -}}
{{- $_ := set $variables "TAINTWARDEN_METRICS_PORT" $ports.metrics -}}
{{- with .certificateSecret -}}
{{- $volume := dict "name" "metrics-certificate" -}}
{{- $mount := dict "mountPath" "/metrics-certificate" "readOnly" true -}}
{{- $_ := set $variables "TAINTWARDEN_METRICS_CERTIFICATE" $mount.mountPath -}}
{{- $mounts = append $mounts (merge $mount $volume) -}}
{{- $volumes = append $volumes (merge (dict "secret" (dict "secretName" .)) $volume) -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- if lt (values $ports | uniq | len) (len $ports) -}}
{{- $named := list -}}
{{- range $port, $number := $ports -}}{{- $named = append $named (printf "%s %v" $port $number) -}}{{- end -}}
{{- fail (printf "%s: %s: the ports of a process have to differ" .name (join ", " $named)) -}}
{{- end -}}
apiVersion: apps/v1
kind: Deployment
metadata:
  {{- $marks := dict "labels" $values.deploymentLabels "annotations" $values.deploymentAnnotations }}
  {{- include "taintwarden.metadata" (merge (dict "root" .root "name" (include "taintwarden.called" .)) $marks) | nindent 2 }}
spec:
  {{- if not (kindIs "invalid" $values.replicas) }}
  replicas: {{ $values.replicas }}
  {{- end }}
  selector:
    matchLabels:
      {{- toYaml $selector | nindent 6 }}
  {{- with $values.strategy }}
  strategy:
    {{- toYaml . | nindent 4 }}
  {{- end }}
  template:
    metadata:
      labels:
        {{- merge (dict) $selector ($values.podLabels | default dict) | toYaml | nindent 8 }}
      {{- with $values.podAnnotations }}
      annotations:
        {{- toYaml . | nindent 8 }}
      {{- end }}
    spec:
      serviceAccountName: {{ .account }}
      automountServiceAccountToken: true
      # Else the Service taintwarden-webhook would put variables of our own prefix into the environment.
      enableServiceLinks: false
      {{- with .root.Values.imagePullSecrets }}
      imagePullSecrets:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- with $values.priorityClassName }}
      priorityClassName: {{ . }}
      {{- end }}
      {{- if not (kindIs "invalid" $values.terminationGracePeriodSeconds) }}
      terminationGracePeriodSeconds: {{ $values.terminationGracePeriodSeconds }}
      {{- end }}
      {{- if $values.hostNetwork }}
      hostNetwork: true
      {{- end }}
      {{- $ofNetwork := ternary "ClusterFirstWithHostNet" "" ($values.hostNetwork | default false) }}
      {{- with $values.dnsPolicy | default $ofNetwork }}
      dnsPolicy: {{ . }}
      {{- end }}
      {{- range $field := list
        "dnsConfig" "nodeSelector" "tolerations" "affinity" "topologySpreadConstraints" "initContainers"
      }}
      {{- with index $values $field }}
      {{ $field }}:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      {{- end }}
      {{- with $values.podSecurityContext }}
      securityContext:
        {{- toYaml . | nindent 8 }}
      {{- end }}
      containers:
        - name: taintwarden
          image: {{ .image | default (include "taintwarden.image" .root) }}
          {{- with (.root.Values.image).pullPolicy }}
          imagePullPolicy: {{ . }}
          {{- end }}
          args: {{ prepend ($values.extraArgs | default list) .process | toJson }}
          env:
            {{- range $variable, $path := .podFields }}
            - name: {{ $variable }}
              valueFrom:
                fieldRef:
                  fieldPath: {{ $path }}
            {{- end }}
            {{- range $variable, $value := $variables }}
            - name: {{ $variable }}
              value: {{ $value | quote }}
            {{- end }}
            {{- with $values.env }}
            {{- toYaml . | nindent 12 }}
            {{- end }}
          ports:
            {{- range $port, $number := $ports }}
            - name: {{ $port }}
              containerPort: {{ $number }}
            {{- end }}
          {{- range $field := list
            "envFrom" "livenessProbe" "readinessProbe" "startupProbe" "lifecycle" "resources" "securityContext"
          }}
          {{- with index $values $field }}
          {{ $field }}:
            {{- toYaml . | nindent 12 }}
          {{- end }}
          {{- end }}
          {{- with concat $mounts ($values.volumeMounts | default list) }}
          volumeMounts:
            {{- toYaml . | nindent 12 }}
          {{- end }}
      {{- with concat $volumes ($values.volumes | default list) }}
      volumes:
        {{- toYaml . | nindent 8 }}
      {{- end }}
{{- end -}}

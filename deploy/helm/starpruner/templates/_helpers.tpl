{{- define "starpruner.name" -}}
{{- default .Chart.Name .Values.nameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "starpruner.fullname" -}}
{{- $name := include "starpruner.name" . -}}
{{- $both := ternary .Release.Name (printf "%s-%s" .Release.Name $name) (contains $name .Release.Name) -}}
{{- default $both .Values.fullnameOverride | trunc 50 | trimSuffix "-" -}}
{{- end -}}

{{- define "starpruner.selectorLabels" -}}
app.kubernetes.io/name: {{ include "starpruner.name" . }}
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}

{{- define "starpruner.labels" -}}
helm.sh/chart: {{ printf "%s-%s" .Chart.Name .Chart.Version | replace "+" "_" }}
{{ include "starpruner.selectorLabels" . }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end -}}

{{- define "starpruner.image" -}}
{{ .Values.image.repository }}:{{ default .Chart.AppVersion .Values.image.tag }}
{{- end -}}

{{- define "starpruner.containerSecurity" -}}
allowPrivilegeEscalation: false
readOnlyRootFilesystem: true
capabilities:
  drop: [ALL]
{{- end -}}

{{- define "starpruner.podSecurity" -}}
runAsNonRoot: true
runAsUser: 10001
runAsGroup: 10001
fsGroup: 10001
fsGroupChangePolicy: OnRootMismatch
seccompProfile:
  type: RuntimeDefault
{{- end -}}

{{- define "starpruner.sharedPath" -}}
/var/lib/starpruner-shared
{{- end -}}

{{/* The configuration as TOML. Helm reads all numbers as floats, and the proxy takes no float for a count. */}}
{{- define "starpruner.toml" -}}
{{- $own := dict "admin" (dict "hosts" (include "starpruner.adminHosts" . | fromYamlArray)) -}}
{{- if .Values.data.shared.enabled -}}
{{- $_ := set $own "history" (dict "shared_path" (include "starpruner.sharedPath" .)) -}}
{{- end -}}
{{- $config := mergeOverwrite (deepCopy .Values.config) $own -}}
{{ regexReplaceAll "(?m)( = -?[0-9]+)\\.0$" (toToml $config) "${1}" | trim }}
{{- end -}}

{{- define "starpruner.serviceAccount" -}}
{{- $own := ternary (include "starpruner.fullname" .) "default" .Values.serviceAccount.create -}}
{{ default $own .Values.serviceAccount.name }}
{{- end -}}

{{/* Names that the admin port is called by: those of its Service, of its Ingress, and of config.admin.hosts. */}}
{{- define "starpruner.adminHosts" -}}
{{- $name := printf "%s-admin" (include "starpruner.fullname" .) -}}
{{- range list "" "." ".svc" ".svc.cluster.local" }}
- {{ $name }}{{ if . }}.{{ $.Release.Namespace }}{{ trimSuffix "." . }}{{ end }}
{{- end }}
{{- if .Values.ingress.enabled }}
- {{ .Values.ingress.host }}
{{- end }}
{{- range dig "admin" "hosts" list .Values.config }}
- {{ . | quote }}
{{- end }}
{{- end -}}

{{/* Addresses of the proxy, with its own defaults. */}}
{{- define "starpruner.listen" -}}
{{ dig "proxy" "listen" "127.0.0.1:10001" .Values.config }}
{{- end -}}
{{- define "starpruner.adminListen" -}}
{{ dig "admin" "listen" "127.0.0.1:10080" .Values.config }}
{{- end -}}

{{- define "starpruner.adminPort" -}}
{{ regexFind "[0-9]+$" (include "starpruner.adminListen" .) }}
{{- end -}}

{{/* The ports of clients, as a YAML list: {name: sasl-10001, port: 10001}. */}}
{{- define "starpruner.clientPorts" -}}
{{- $listeners := .Values.config.listener | default list -}}
{{- with include "starpruner.listen" . }}{{ $listeners = prepend $listeners (dict "listen" .) }}{{ end -}}
{{- range $listeners }}
{{- $port := regexFind "[0-9]+$" .listen }}
- {name: {{ default "sasl" .transport }}-{{ $port }}, port: {{ $port }}}
{{- end }}
{{- end -}}

{{/* Whole seconds for which sessions may go on. */}}
{{- define "starpruner.drainSeconds" -}}
{{ dig "proxy" "drain_s" 20 .Values.config | ceil | int }}
{{- end -}}

{{/* The grace period of a pod. 20 s: the proxy's supervisor waits 15 s after the drain before it kills. */}}
{{- define "starpruner.graceSeconds" -}}
{{- $least := add .Values.shutdown.preStopSeconds (include "starpruner.drainSeconds" .) 20 -}}
{{- $asked := .Values.shutdown.terminationGracePeriodSeconds -}}
{{- if kindIs "invalid" $asked }}{{ $least }}
{{- else if lt (int $asked) (int $least) }}
{{- fail (printf "shutdown.terminationGracePeriodSeconds is %d, which would cut what the drain lets finish. Expected at least %d, which are shutdown.preStopSeconds, config.proxy.drain_s and 20; or null" (int $asked) (int $least)) }}
{{- else }}{{ int $asked }}{{ end -}}
{{- end -}}

{{/* "true" if several replicas may run at the same time, else nothing. */}}
{{- define "starpruner.hasReplicas" -}}
{{- if or .Values.autoscaling.enabled (gt (int .Values.replicaCount) 1) }}true{{ end -}}
{{- end -}}

{{/* Refuses values that Kubernetes would take, and that would not work. */}}
{{- define "starpruner.check" -}}
{{- $listens := list (list "proxy.listen" (include "starpruner.listen" .)) (list "admin.listen" (include "starpruner.adminListen" .)) -}}
{{- range .Values.config.listener }}{{ $listens = append $listens (list "listener" .listen) }}{{ end -}}
{{- range $listens -}}
{{- if regexMatch "^(127\\.|localhost:|\\[::1\\])" (last .) }}
{{- fail (printf "config.%s is %s, where nothing outside of the pod can connect. Expected 0.0.0.0:PORT" (first .) (last .)) }}
{{- end }}
{{- end -}}
{{- if not (include "starpruner.clientPorts" .) }}
{{- fail "config.proxy.listen is empty and there is no config.listener: nobody could connect" }}
{{- end -}}
{{- range list (list "history" "path") (list "catalog" "store_path") (list "shadow" "differences_path") -}}
{{- $path := dig (first .) (last .) "" $.Values.config -}}
{{- if and $path (not (hasPrefix "/var/lib/starpruner/" $path)) }}
{{- fail (printf "config.%s is %s, which cannot be written. Expected a path below /var/lib/starpruner" (join "." .) $path) }}
{{- end }}
{{- end -}}
{{- if and .Values.data.claim.enabled (include "starpruner.hasReplicas" .) }}
{{- fail "data.claim.enabled needs replicaCount: 1 and no autoscaling: it is for the file of one replica. Several tell one another their statements by data.shared" }}
{{- end -}}
{{- if and .Values.ingress.enabled (not .Values.ingress.host) }}
{{- fail "ingress.enabled needs ingress.host, the name at which people open the pages" }}
{{- end -}}
{{- end -}}

{{- define "postern.labels" -}}
app.kubernetes.io/name: postern
app.kubernetes.io/instance: {{ .Release.Name }}
{{- end -}}
{{- define "postern.refuse" -}}
{{- if not .Values.s3.endpoint -}}
{{- range $name, $one := .Values.deployments -}}
{{- if or (gt (len $.Values.deployments) 1) (gt (int $one.replicas) 1) -}}
{{- fail "several pods need one store of large bodies: set s3.endpoint, s3.bucket and s3.secret" -}}
{{- end -}}
{{- if lt (len $one.roles) 6 -}}
{{- fail "without s3.endpoint there is one pod, which must have all roles" -}}
{{- end -}}
{{- end -}}
{{- end -}}
{{- end -}}

{{- define "custody.name" -}}{{ .Release.Name | trunc 40 | trimSuffix "-" }}{{- end }}
{{- define "custody.labels" -}}
app.kubernetes.io/name: custody
app.kubernetes.io/instance: {{ .Release.Name | quote }}
app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
app.kubernetes.io/managed-by: {{ .Release.Service }}
{{- end }}
{{- define "custody.selector" -}}
app.kubernetes.io/name: custody
app.kubernetes.io/instance: {{ .Release.Name | quote }}
{{- end }}

package manifest

import (
	"slices"
	"strings"
)

// kindRefs are the references besides those of PodSpecs and those whose keys say
// what they are (secretKeyRef, tokenSecretRef and the like). To add one, add a
// row, with the source of the rule, and the field to
// testdata/golden/custom-references.txtar.
//
// Not here, on purpose: names of Secrets that a controller makes, such as
// secretName of a Certificate.
func kindRefs() []KindRef {
	return slices.Concat(coreRefs(), trafficRefs(), storageRefs(), operatorRefs(), deliveryRefs())
}

// to gives a row to a kind of the core group.
func to(target, group, kinds, path string) KindRef {
	r := KindRef{Group: group, Path: strings.Split(path, "/"), TargetKind: target}
	if kinds != "" {
		r.Kinds = strings.Fields(kinds)
	}
	return r
}

// selector gives a row to a mapping with a name; a text in its place means
// something else.
func selector(target, group, kinds, path string) KindRef {
	r := to(target, group, kinds, path)
	r.Mapping = true
	return r
}

// said gives a row to a mapping that may say a kind, Secret or ConfigMap.
func said(target, group, kinds, path string) KindRef {
	r := to(target, group, kinds, path)
	r.KindSaid = true
	return r
}

func coreRefs() []KindRef {
	return []KindRef{
		// https://kubernetes.io/docs/reference/kubernetes-api/authentication-resources/service-account-v1/
		to("Secret", "", "ServiceAccount", "imagePullSecrets"),
		to("Secret", "", "ServiceAccount", "secrets"),
		// https://kubernetes.io/docs/reference/access-authn-authz/validating-admission-policy/#parameter-resources
		to("ConfigMap", "admissionregistration.k8s.io", "ValidatingAdmissionPolicyBinding MutatingAdmissionPolicyBinding", "spec/paramRef"),
	}
}

// trafficRefs are those of what lets traffic in.
func trafficRefs() []KindRef {
	rows := []KindRef{
		// https://kubernetes.io/docs/reference/kubernetes-api/service-resources/ingress-v1/#IngressSpec
		to("Secret", "networking.k8s.io", "Ingress", "spec/tls/secretName"),
		to("Secret", "extensions", "Ingress", "spec/tls/secretName"),
		// https://gateway-api.sigs.k8s.io/reference/spec/#secretobjectreference
		said("Secret", "gateway.networking.k8s.io", "Gateway ListenerSet", "spec/listeners/tls/certificateRefs"),
		said("ConfigMap", "gateway.networking.k8s.io", "Gateway", "spec/**/caCertificateRefs"),
		said("Secret", "gateway.networking.k8s.io", "Gateway", "spec/**/clientCertificateRef"),
		said("ConfigMap", "gateway.networking.k8s.io", "BackendTLSPolicy", "spec/validation/caCertificateRefs"),
		// https://istio.io/latest/docs/reference/config/networking/gateway/#ServerTLSSettings
		to("Secret", "networking.istio.io", "Gateway", "spec/servers/tls/credentialName"),
		to("Secret", "networking.istio.io", "DestinationRule", "spec/**/tls/credentialName"),
		to("Secret", "extensions.istio.io", "WasmPlugin", "spec/imagePullSecret"),
		// https://doc.traefik.io/traefik/reference/routing-configuration/kubernetes/crd/http/ingressroute/
		to("Secret", "traefik.io", "IngressRoute IngressRouteTCP", "spec/tls/secretName"),
		to("Secret", "traefik.io", "Middleware", "spec/*/secret"),
		to("Secret", "traefik.io", "TLSStore", "spec/defaultCertificate/secretName"),
		to("Secret", "traefik.io", "TLSOption", "spec/clientAuth/secretNames"),
	}
	// https://kubernetes.github.io/ingress-nginx/user-guide/nginx-configuration/annotations/
	for annotation, kind := range map[string]string{
		"auth-secret": "Secret", "auth-tls-secret": "Secret", "proxy-ssl-secret": "Secret",
		"auth-proxy-set-headers": "ConfigMap", "custom-headers": "ConfigMap", "fastcgi-params-configmap": "ConfigMap",
	} {
		r := KindRef{Group: "networking.k8s.io", Kinds: []string{"Ingress"}, Path: []string{"metadata", "annotations", "nginx.ingress.kubernetes.io/" + annotation}, TargetKind: kind, Slash: true}
		rows = append(rows, r)
	}
	// https://projectcontour.io/docs/main/config/api/#projectcontour.io/v1.TLS
	contour := to("Secret", "projectcontour.io", "HTTPProxy", "spec/virtualhost/tls/secretName")
	contour.Slash = true
	return append(rows, contour)
}

func storageRefs() []KindRef {
	rows := []KindRef{
		// https://kubernetes.io/docs/reference/kubernetes-api/config-and-storage-resources/persistent-volume-v1/
		{Group: "", Kinds: []string{"PersistentVolume"}, Path: []string{"spec", "azureFile", "secretName"}, TargetKind: "Secret", NamespaceKey: "secretNamespace"},
	}
	// https://kubernetes-csi.github.io/docs/secrets-and-credentials-storage-class.html
	for _, use := range []string{"provisioner", "controller-publish", "node-stage", "node-publish", "controller-expand", "node-expand"} {
		rows = append(rows, csiSecret("storage.k8s.io", "StorageClass", use))
	}
	// https://kubernetes-csi.github.io/docs/secrets-and-credentials-volume-snapshot-class.html
	for _, use := range []string{"snapshotter", "snapshotter-list"} {
		rows = append(rows, csiSecret("snapshot.storage.k8s.io", "VolumeSnapshotClass", use))
	}
	// The provisioners of rbd, Quobyte, StorageOS and ScaleIO.
	// https://v1-27.docs.kubernetes.io/docs/concepts/storage/storage-classes/#ceph-rbd
	for key, namespace := range map[string]string{"adminSecretName": "adminSecretNamespace", "userSecretName": "userSecretNamespace", "secretRef": "secretNamespace"} {
		rows = append(rows, KindRef{Group: "storage.k8s.io", Kinds: []string{"StorageClass"}, Path: []string{"parameters", key}, TargetKind: "Secret", NamespaceKey: namespace})
	}
	return rows
}

func csiSecret(group, kind, use string) KindRef {
	const prefix = "csi.storage.k8s.io/"
	return KindRef{
		Group: group, Kinds: []string{kind}, Path: []string{"parameters", prefix + use + "-secret-name"},
		TargetKind: "Secret", NamespaceKey: prefix + use + "-secret-namespace",
	}
}

// operatorRefs are those of operators.
func operatorRefs() []KindRef {
	const monitors = "Prometheus PrometheusAgent Alertmanager ThanosRuler ServiceMonitor PodMonitor Probe ScrapeConfig"
	rows := []KindRef{
		// https://prometheus-operator.dev/docs/api-reference/api/
		to("Secret", "monitoring.coreos.com", "Prometheus PrometheusAgent Alertmanager", "spec/secrets"),
		to("ConfigMap", "monitoring.coreos.com", "Prometheus PrometheusAgent Alertmanager", "spec/configMaps"),
		to("Secret", "monitoring.coreos.com", "Alertmanager", "spec/configSecret"),
		selector("Secret", "monitoring.coreos.com", monitors, "spec/**/tlsConfig/*/secret"),
		selector("ConfigMap", "monitoring.coreos.com", monitors, "spec/**/tlsConfig/*/configMap"),
		// https://cert-manager.io/docs/configuration/ca/
		to("Secret", "cert-manager.io", "Issuer ClusterIssuer", "spec/ca/secretName"),
		// https://keda.sh/docs/latest/concepts/authentication/
		to("Secret", "keda.sh", "TriggerAuthentication ClusterTriggerAuthentication", "spec/secretTargetRef"),
		to("ConfigMap", "keda.sh", "TriggerAuthentication ClusterTriggerAuthentication", "spec/configMapTargetRef"),
		// https://external-secrets.io/latest/api/spec/
		to("Secret", "external-secrets.io", "PushSecret", "spec/selector/secret"),
		to("Secret", "external-secrets.io", "ExternalSecret", "spec/target/template/templateFrom/secret"),
		to("ConfigMap", "external-secrets.io", "ExternalSecret", "spec/target/template/templateFrom/configMap"),
		// https://cloudnative-pg.io/documentation/current/cloudnative-pg.v1/
		selector("Secret", "postgresql.cnpg.io", "Cluster", "spec/**/secret"),
		to("Secret", "postgresql.cnpg.io", "Cluster", "spec/superuserSecret"),
		to("ConfigMap", "postgresql.cnpg.io", "Cluster", "spec/monitoring/customQueriesConfigMap"),
		to("Secret", "postgresql.cnpg.io", "Cluster", "spec/monitoring/customQueriesSecret"),
	}
	// SecretKeySelectors that are called by what they hold.
	for _, key := range []string{
		"username", "password", "bearerTokenSecret", "credentials", "clientSecret", "keySecret", "objectStorageConfig",
		"additionalScrapeConfigs", "additionalAlertManagerConfigs", "additionalAlertRelabelConfigs", "proxyConnectHeader/*",
		"apiURL", "apiKey", "routingKey", "serviceKey", "webhookUrl", "botToken", "userKey", "token", "apiSecret", "urlSecret",
	} {
		rows = append(rows, selector("Secret", "monitoring.coreos.com", "", "spec/**/"+key))
	}
	return rows
}

// deliveryRefs are those of what delivers.
func deliveryRefs() []KindRef {
	return []KindRef{
		// https://fluxcd.io/flux/components/helm/helmreleases/#values-references
		said("", "helm.toolkit.fluxcd.io", "HelmRelease", "spec/valuesFrom"),
		// https://fluxcd.io/flux/components/kustomize/kustomizations/#post-build-variable-substitution
		said("", "kustomize.toolkit.fluxcd.io", "Kustomization", "spec/postBuild/substituteFrom"),
		// https://argo-cd.readthedocs.io/en/stable/operator-manual/applicationset/Generators-Cluster-Decision-Resource/
		to("ConfigMap", "argoproj.io", "ApplicationSet", "spec/**/configMapRef"),
		// https://argo-workflows.readthedocs.io/en/latest/fields/
		selector("ConfigMap", "argoproj.io", "Workflow WorkflowTemplate ClusterWorkflowTemplate CronWorkflow", "spec/**/configMap"),
	}
}

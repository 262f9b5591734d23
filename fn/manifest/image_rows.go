package manifest

import (
	"slices"
	"strings"
)

// imageRows are the image fields besides those of PodSpecs. To add one, add a
// row, with the source of the rule, and a line to TestImageRows.
//
// Not here, on purpose: what is written by a controller (status), repositories
// that are watched and not run (ImageRepository of Flux), images that are built
// (the output of KafkaConnect), and the source of DataImportCron, which is there to
// follow a tag.
func imageRows() []ImageRow {
	return slices.Concat(ciRows(), observabilityRows(), dataRows(), platformRows())
}

// at gives a row of a group; kinds are separated by blanks, "" for all.
func at(group, kinds, path string) ImageRow {
	r := ImageRow{Group: group, Path: strings.Split(path, "/")}
	if kinds != "" {
		r.Kinds = strings.Fields(kinds)
	}
	return r
}

// ciRows are those of what builds and delivers.
func ciRows() []ImageRow {
	const workflows = "Workflow WorkflowTemplate ClusterWorkflowTemplate CronWorkflow Sensor EventSource"
	return []ImageRow{
		// Task, ClusterTask and StepAction, and what embeds them: Pipeline,
		// PipelineRun, TaskRun.
		// https://tekton.dev/docs/pipelines/tasks/#configuring-a-task
		at("tekton.dev", "", "spec/**/steps/image"),
		at("tekton.dev", "", "spec/**/sidecars/image"),
		at("tekton.dev", "", "spec/**/stepTemplate/image"),
		at("tekton.dev", "StepAction", "spec/image"),
		// https://tekton.dev/docs/pipelines/tekton-bundle-contracts/
		at("tekton.dev", "", "spec/**/taskRef/bundle"),
		at("tekton.dev", "", "spec/**/pipelineRef/bundle"),
		// https://tekton.dev/docs/triggers/triggertemplates/
		at("triggers.tekton.dev", "TriggerTemplate", "spec/**/steps/image"),
		at("triggers.tekton.dev", "TriggerTemplate", "spec/**/sidecars/image"),
		// https://shipwright.io/docs/build/buildstrategies/
		at("shipwright.io", "BuildStrategy ClusterBuildStrategy", "spec/steps/image"),
		at("shipwright.io", "BuildStrategy ClusterBuildStrategy", "spec/buildSteps/image"),
		// https://argo-workflows.readthedocs.io/en/latest/fields/#template
		// https://argoproj.github.io/argo-events/sensors/
		at("argoproj.io", workflows, "spec/**/container/image"),
		at("argoproj.io", workflows, "spec/**/script/image"),
		at("argoproj.io", workflows, "spec/**/sidecars/image"),
		// https://grafana.com/docs/k6/latest/set-up/set-up-distributed-k6/usage/configure-testrun-crd/
		at("k6.io", "TestRun K6", "spec/runner/image"),
		at("k6.io", "TestRun K6", "spec/starter/image"),
		at("k6.io", "TestRun K6", "spec/initializer/image"),
		// https://olm.operatorframework.io/docs/concepts/crds/catalogsource/
		at("operators.coreos.com", "CatalogSource", "spec/image"),
		at("operators.coreos.com", "ClusterServiceVersion", "spec/relatedImages/image"),
	}
}

// observabilityRows are those of what watches.
func observabilityRows() []ImageRow {
	return []ImageRow{
		// https://prometheus-operator.dev/docs/api-reference/api/
		at("monitoring.coreos.com", "Prometheus PrometheusAgent Alertmanager ThanosRuler", "spec/image"),
		at("monitoring.coreos.com", "Prometheus", "spec/thanos/image"),
		// https://github.com/open-telemetry/opentelemetry-operator/blob/main/docs/api
		at("opentelemetry.io", "OpenTelemetryCollector OpAMPBridge TargetAllocator", "spec/image"),
		at("opentelemetry.io", "OpenTelemetryCollector", "spec/targetAllocator/image"),
		at("opentelemetry.io", "Instrumentation", "spec/**/image"),
		// https://www.jaegertracing.io/docs/1.76/operator/
		at("jaegertracing.io", "Jaeger", "spec/**/image"),
		// https://library.humio.com/falcon-logscale-self-hosted/
		at("core.humio.com", "HumioCluster", "spec/image"),
	}
}

// dataRows are those of databases, queues and data processing.
func dataRows() []ImageRow {
	return []ImageRow{
		// https://strimzi.io/docs/operators/latest/configuring.html#con-common-configuration-images-reference
		at("kafka.strimzi.io", "Kafka", "spec/**/image"),
		at("kafka.strimzi.io", "KafkaConnect KafkaMirrorMaker KafkaMirrorMaker2 KafkaBridge", "spec/image"),
		// https://cloudnative-pg.io/documentation/current/container_images/
		at("postgresql.cnpg.io", "Cluster", "spec/imageName"),
		at("postgresql.cnpg.io", "ImageCatalog ClusterImageCatalog", "spec/images/image"),
		// https://postgres-operator.readthedocs.io/en/latest/reference/cluster_manifest/
		at("acid.zalan.do", "postgresql", "spec/dockerImage"),
		at("acid.zalan.do", "postgresql", "spec/sidecars/image"),
		// https://docs.percona.com/percona-operator-for-mysql/pxc/operator.html
		at("pxc.percona.com", "PerconaXtraDBCluster", "spec/**/image"),
		at("psmdb.percona.com", "PerconaServerMongoDB", "spec/**/image"),
		at("pgv2.percona.com", "PerconaPGCluster", "spec/**/image"),
		at("ps.percona.com", "PerconaServerMySQL", "spec/**/image"),
		// https://mariadb-operator.github.io/mariadb-operator/
		at("k8s.mariadb.com", "MariaDB MaxScale", "spec/**/image"),
		// https://www.elastic.co/docs/deploy-manage/deploy/cloud-on-k8s/create-custom-images
		at("elasticsearch.k8s.elastic.co", "", "spec/image"),
		at("kibana.k8s.elastic.co", "", "spec/image"),
		at("apm.k8s.elastic.co", "", "spec/image"),
		at("beat.k8s.elastic.co", "", "spec/image"),
		at("agent.k8s.elastic.co", "", "spec/image"),
		at("logstash.k8s.elastic.co", "", "spec/image"),
		// https://www.rabbitmq.com/kubernetes/operator/using-operator#images
		at("rabbitmq.com", "RabbitmqCluster", "spec/image"),
		// https://github.com/minio/operator/blob/master/docs/tenant_crd.adoc
		at("minio.min.io", "Tenant", "spec/image"),
		at("minio.min.io", "Tenant", "spec/kes/image"),
		// https://rook.io/docs/rook/latest/CRDs/Cluster/ceph-cluster-crd/
		at("ceph.rook.io", "CephCluster", "spec/cephVersion/image"),
		// https://docs.netapp.com/us-en/trident/trident-get-started/kubernetes-customize-deploy.html
		at("trident.netapp.io", "TridentOrchestrator", "spec/tridentImage"),
		at("trident.netapp.io", "TridentOrchestrator", "spec/autosupportImage"),
		// https://kubeflow.github.io/spark-operator/docs/api-docs.html
		at("sparkoperator.k8s.io", "SparkApplication ScheduledSparkApplication", "spec/**/image"),
		// https://nightlies.apache.org/flink/flink-kubernetes-operator-docs-main/docs/custom-resource/reference/
		at("flink.apache.org", "FlinkDeployment", "spec/image"),
		// https://numaflow.numaproj.io/APIs/
		at("numaflow.numaproj.io", "", "spec/**/container/image"),
		at("numaplane.numaproj.io", "", "spec/**/container/image"),
	}
}

// crossplane gives a row for packages, whose default registry is Crossplane's.
// https://docs.crossplane.io/latest/packages/providers/#install-a-provider
func crossplane(group, kinds, path string) ImageRow {
	r := at(group, kinds, path)
	r.NeedsHost = true
	return r
}

// platformRows are those of what runs other things.
func platformRows() []ImageRow {
	disk := at("cdi.kubevirt.io", "DataVolume", "spec/source/registry/url")
	disk.Prefix, disk.NoTag = "docker://", true
	template := at("kubevirt.io", "VirtualMachine", "spec/dataVolumeTemplates/spec/source/registry/url")
	template.Prefix, template.NoTag = "docker://", true
	return []ImageRow{
		// https://kubevirt.io/user-guide/storage/disks_and_volumes/#containerdisk
		at("kubevirt.io", "", "spec/**/containerDisk/image"),
		at("kubevirt.io", "", "spec/**/kernelBoot/container/image"),
		at("pool.kubevirt.io", "", "spec/**/containerDisk/image"),
		// The importer refuses a tag beside a digest.
		// https://github.com/kubevirt/containerized-data-importer/blob/main/doc/datavolumes.md
		// https://github.com/containers/image/issues/1736
		disk, template,
		// https://docs.crossplane.io/latest/packages/providers/
		crossplane("pkg.crossplane.io", "Provider Configuration Function", "spec/package"),
		crossplane("pkg.crossplane.io", "ProviderRevision ConfigurationRevision FunctionRevision", "spec/image"),
		crossplane("stacks.crossplane.io", "StackInstall ClusterStackInstall", "spec/package"),
		// https://knative.dev/docs/serving/; the second is its first API
		at("caching.internal.knative.dev", "Image", "spec/image"),
		at("serving.knative.dev", "", "spec/**/container/image"),
		// https://knative.dev/docs/install/operator/configuring-serving-cr/
		at("operator.knative.dev", "KnativeServing KnativeEventing", "spec/registry/override/*"),
		// https://docs.openfaas.com/openfaas-pro/function-crd/
		at("openfaas.com", "Function", "spec/image"),
		// https://www.spinkube.dev/docs/reference/spin-app/
		at("core.spinkube.dev", "SpinApp", "spec/image"),
		// https://gateway.envoyproxy.io/docs/api/extension_types/#kubernetescontainerspec
		at("gateway.envoyproxy.io", "EnvoyProxy", "spec/**/container/image"),
		// https://www.keycloak.org/operator/customizing-keycloak
		at("k8s.keycloak.org", "Keycloak", "spec/image"),
		// https://bank-vaults.dev/docs/operator/
		at("vault.banzaicloud.com", "Vault", "spec/image"),
		at("vault.banzaicloud.com", "Vault", "spec/bankVaultsImage"),
		at("vault.banzaicloud.com", "Vault", "spec/statsdImage"),
		// https://longhorn.io/docs/latest/references/
		at("longhorn.io", "EngineImage", "spec/image"),
	}
}

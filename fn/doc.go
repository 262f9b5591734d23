// Package fn hydrates Kubernetes manifests: it pins images to digests, gives
// ConfigMaps and Secrets immutable versions, and makes every reference follow.
//
// [ParseConfig] reads the configuration, [Process] does the work on a
// [manifest.List]. As a library:
//
//	list, err := manifest.Read(resourceList)
//	cfg, err := fn.ParseConfig(list.FunctionConfig)
//	fn.Process(ctx, list, cfg, fn.Options{Resolver: client})
//	out, err := list.Output() // or list.Refusal(), if list.Failed()
//
// Only a Resolver opens connections, and only package internal/cli touches files.
package fn

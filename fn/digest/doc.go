// Package digest replaces image tags with the digests they stand for.
//
// A reference keeps the spelling of its author; the digest is appended:
// nginx:1.27 becomes nginx:1.27@sha256:… and nginx becomes nginx@sha256:…, never
// nginx:latest@sha256:…, since a tag latest changes the default of
// imagePullPolicy (SetDefaults_Container in k8s.io/kubernetes). An index stays
// an index, so that every platform can still run it. What already has a digest
// is left alone.
//
// Not images, and left alone with a note: an empty or missing reference, "auto"
// (Istio fills it in), placeholders such as $(VAR), ${VAR}, {{ }} and <...>,
// ko:// references, the hosts kind.local, ko.local and dev.local, images with the pull
// policy Never, and what the rules in [Config] name.
//
// Each canonical reference is asked for once, however often and in however many
// spellings it is used, and not at all when the lock holds it. All failures are
// reported, in the order of the input.
package digest

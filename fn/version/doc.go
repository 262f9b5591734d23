// Package version gives ConfigMaps and Secrets immutable versions by content,
// and makes every reference follow.
//
// A version's name is that of its base with a suffix: a hash of the content
// (app-config-7f9d2k8c9m), or a number (app-config-v000). Content that was seen
// before gets its old version back. What an object's content is, says its
// content hash: see [Hash].
//
// In place, again and again: an object that carries belay's annotations and
// whose content matches its hash is left alone; one whose content was edited
// gets its next version, and references to its old name follow. The base comes
// from the annotation, never from guessing at a suffix: a user may own a
// ConfigMap called app-v001.
//
// Versioned objects that refer to each other are named in the order of their
// references, so that a hash covers what is referred to.
package version

// Package manifest reads and writes Kubernetes manifests without disturbing
// them: what no step changed stays byte for byte what its author wrote.
//
// Decoding finds positions and writing splices text. A [List] is read from a
// ResourceList ([Read]), from a stream of documents or from files ([List.AddFile]);
// each [Object] is one resource with a tree of [Node] values that remember where
// in the text they stand. Edits ([Object.Set], [Object.SetField],
// [Object.Remove], [Object.Append]) change the tree at once, so that later steps
// see them, and become text edits when [Source.Bytes] is called. Comments, blank
// lines, quoting, key order and line endings are never touched.
//
// Where no text edit can express a change (a value reached through an alias of a
// mapping, a merge key), that one object is encoded again, and no other.
//
// The guarantee, tested by fuzzing: decoding the spliced bytes gives the same
// tree as applying the same edits to the decoded tree.
package manifest

package manifest

import (
	"errors"
	"fmt"
)

// alwaysVerified is the size up to which every text is read again after it was
// edited. Larger ones are when an object had to be encoded: splices are simple.
const alwaysVerified = 1 << 20

// verify reads the edited text again, and gives an error where an object in it
// is not what was meant: rather no output than a wrong one.
func (s *Source) verify(out []byte, encoded bool) error {
	if !encoded && len(out) > alwaysVerified {
		return nil
	}
	again, err := s.readAgain(out)
	if err != nil {
		return fmt.Errorf("this YAML cannot be edited: what comes of it cannot be read (%w)", err)
	}
	for i, o := range s.Objects() {
		if i >= len(again) || !equal(o.root, again[i].root) {
			return fmt.Errorf("%s: this YAML cannot be edited (write it in a plainer style: without anchors, explicit keys and tags)", o.ID)
		}
	}
	return nil
}

// readAgain gives the objects of an edited text.
func (s *Source) readAgain(out []byte) ([]*Object, error) {
	if s.items != nil {
		l, err := Read(out)
		if err != nil {
			return nil, err
		}
		return l.Objects, nil
	}
	c := &Source{text: string(out)}
	var objects []*Object
	for _, d := range documents(c.text) {
		got, err := c.decodeDocument(d.from, d.to)
		var other notAnObject
		if err != nil && !errors.As(err, &other) {
			return nil, err
		}
		objects = append(objects, got...)
	}
	return objects, nil
}

// equal tells whether two trees hold the same, in whatever order of keys.
func equal(a, b *Node) bool {
	if a == nil || b == nil || a.kind != b.kind {
		return a == b
	}
	switch a.kind {
	case Scalar:
		return a.tag == b.tag && (a.tag == tagNull || a.value == b.value)
	case Sequence:
		if len(a.content) != len(b.content) {
			return false
		}
		for i := range a.content {
			if !equal(a.content[i], b.content[i]) {
				return false
			}
		}
		return true
	default:
		for k := range a.Pairs() {
			if !equal(a.Get(k.value), b.Get(k.value)) {
				return false
			}
		}
		return a.Len() == b.Len()
	}
}

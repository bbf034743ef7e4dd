// SPDX-License-Identifier: Apache-2.0

// Package subject names the things that ironrail works on. It is a leaf: plans,
// facts, findings and events all speak of subjects.
package subject

import (
	"fmt"
	"strings"
)

// Kind is the sort of thing a subject is.
type Kind string

// The kinds of subject. Site-wide things that are not hardware (an image, a
// hand-over target) are named under Site, such as site/image.hpc.
const (
	Node   Kind = "node"
	Rack   Kind = "rack"
	PDU    Kind = "pdu"   // RACK/PDU
	Shelf  Kind = "shelf" // RACK/SHELF, of power supplies
	Switch Kind = "switch"
	Link   Kind = "link" // by one of its ends: NODE/NIC/PORT
	Fabric Kind = "fabric"
	Group  Kind = "group"
	Site   Kind = "site"
)

// ID names one subject. It is comparable.
type ID struct {
	Kind Kind
	Name string
}

// OfNode returns the subject of the named node.
func OfNode(name string) ID { return ID{Node, name} }

// String returns kind/name.
func (s ID) String() string { return string(s.Kind) + "/" + s.Name }

// MarshalText writes kind/name, so that a subject can be a JSON map key.
func (s ID) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads kind/name.
func (s *ID) UnmarshalText(b []byte) error {
	k, n, ok := strings.Cut(string(b), "/")
	if !ok || k == "" || n == "" {
		return fmt.Errorf("subject %q is not kind/name", b)
	}
	*s = ID{Kind(k), n}
	return nil
}

// Some lists the names of subjects for a sentence: of more than most the first ones,
// and how many more there are.
func Some(names []string, most int) string {
	if len(names) <= most {
		return strings.Join(names, ", ")
	}
	return fmt.Sprintf("%s and %d more", strings.Join(names[:most], ", "), len(names)-most)
}

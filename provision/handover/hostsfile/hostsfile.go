// SPDX-License-Identifier: Apache-2.0

// Package hostsfile is the handover kind "hosts": the names and addresses of the nodes
// in service and of their rails, as hosts(5) has them.
package hostsfile

import (
	"bytes"
	"fmt"
	"io"

	"github.com/ironrail/ironrail/fabric/roce"
	"github.com/ironrail/ironrail/provision/addresses"
	"github.com/ironrail/ironrail/provision/handover"
	"github.com/ironrail/ironrail/provision/handover/export"
)

const (
	// Name is the kind's name in the language.
	Name = "hosts"
	// FileName is the file that it writes.
	FileName = "hosts"
)

// New returns the kind. links are the addresses that were allocated to links.
func New(dir string, links []*roce.Links) *export.Kind {
	return export.New(dir, func(t handover.Target) ([]handover.File, error) {
		var b bytes.Buffer
		err := write(&b, t, links)
		return []handover.File{{Name: FileName, Content: b.Bytes()}}, err
	}, func(w io.Writer, t handover.Target) { _ = write(w, t, links) }) // into memory
}

// write writes the file.
func write(w io.Writer, t handover.Target, links []*roce.Links) error {
	in := map[string]bool{}
	for _, m := range export.InService(t) {
		in[m.Node.Name] = true
	}
	var list []addresses.Entry
	for _, e := range addresses.List(t.Inventory, links) {
		if in[e.Node] && (e.Kind == addresses.Node || e.Kind == addresses.Rail) {
			list = append(list, e)
		}
	}
	if _, err := fmt.Fprintf(w, "# Nodes in service of handover %q, written by ironrail. Changes by hand are lost.\n", t.Name); err != nil {
		return err
	}
	return addresses.Hosts(w, list, t.Inventory.Site.Domain)
}

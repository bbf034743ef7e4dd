// SPDX-License-Identifier: Apache-2.0

// Package inventory owns the HCL language of a site: it loads the *.hcl files of
// one folder into typed racks, nodes, networks and fabrics, and says with place
// and reason what in them cannot be right. It resolves no secret, opens no
// network connection and reads no file outside the folder.
//
// The language is described in docs/language.md. The kinds of images, drivers,
// fabrics and handovers own their attributes: Kinds tells the loader which there
// are, and Block.Decode hands the body to their owner.
package inventory

// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"bytes"
	"encoding/json"
	"strings"
	"time"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"
)

// Program is a program of ironrail with the modules of Go that it is made of.
type Program struct {
	Version string // as its packages have it
	Commit  string
	At      time.Time // of the commit
	Arch    string    // as Go has it
	Tool    string    // that writes the document
	Modules []Module
}

// Module is a module of Go, or with the path "stdlib" its standard library.
type Module struct{ Path, Version string }

// MarshalProgram returns the document. It is the same for the same program.
func MarshalProgram(p Program) ([]byte, error) {
	self := describeModule("ironrail", Module{"ironrail", p.Version}, "github.com/ironrail/ironrail@"+p.Commit)
	self.PackageLicenseDeclared, self.PrimaryPackagePurpose = "Apache-2.0", "APPLICATION"
	doc := newDocument("ironrail "+p.Version+" for "+p.Arch, "release/"+p.Commit+"/"+p.Arch, p.At.UTC().Format(time.RFC3339), p.Tool, self)
	for _, m := range p.Modules {
		id := common.ElementID("Module-" + cleanID(m.Path))
		doc.Packages = append(doc.Packages, describeModule(id, m, m.Path+"@"+strings.ReplaceAll(m.Version, "+", "%2B")))
		doc.Relationships = append(doc.Relationships, relate("ironrail", "CONTAINS", id))
	}
	text, err := encode(doc)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	err = json.Indent(&out, text, "", " ")
	return out.Bytes(), err
}

// describeModule is one module; scanners look it up by its package URL (type golang).
func describeModule(id common.ElementID, m Module, url string) *spdx.Package {
	return &spdx.Package{
		PackageName: m.Path, PackageSPDXIdentifier: id, PackageVersion: m.Version, PackageDownloadLocation: unknown,
		PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: "pkg:golang/" + url}},
	}
}

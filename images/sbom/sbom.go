// SPDX-License-Identifier: Apache-2.0

// Package sbom writes the packages of an image as a software bill of materials in SPDX
// 2.3, JSON (spdx.github.io/spdx-spec/v2.3), which scanners of others read. It says what
// is installed and under which licences packages say that they are: files, and whether that is
// so, are not looked at.
package sbom

import (
	"bytes"
	"cmp"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spdx/tools-golang/spdx/v2/common"
	spdx "github.com/spdx/tools-golang/spdx/v2/v2_3"

	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/internal/manifest"
)

// created is the time of all documents: the same image has the same one. It is that of
// the files of images.
const created = "2025-01-01T00:00:00Z"

// unknown is what SPDX writes for what nobody asserts.
const unknown = "NOASSERTION"

// Image is an image with its packages.
type Image struct {
	Name     string // image.NAME
	Recipe   string // sha256:HEX
	System   manifest.System
	Packages []installed.Package
}

// Marshal returns the document. It is the same for the same image.
func Marshal(i Image) ([]byte, error) {
	system := &spdx.Package{
		PackageName: i.Name, PackageSPDXIdentifier: "Image", PackageVersion: i.Recipe, PackageDownloadLocation: unknown,
		PackageLicenseConcluded: unknown, PackageLicenseDeclared: unknown, PackageCopyrightText: unknown, PrimaryPackagePurpose: "OPERATING-SYSTEM",
		PackageComment: strings.Join(strings.Fields(fmt.Sprintf("%s %s %s, kernel %s", i.System.Distribution, i.System.Release, i.System.Arch, i.System.Kernel)), " "),
	}
	doc := newDocument(i.Name, "sbom/"+strings.Replace(i.Recipe, ":", "-", 1), created, "ironrail", system)
	seen := map[common.ElementID]int{}
	for _, p := range i.Packages {
		id := idOf(p)
		if seen[id]++; seen[id] > 1 {
			id = common.ElementID(fmt.Sprintf("%s-%d", id, seen[id]))
		}
		doc.Packages = append(doc.Packages, describe(i.System, p, id))
		doc.Relationships = append(doc.Relationships, relate("Image", "CONTAINS", id))
	}
	doc.OtherLicenses = otherLicenses(i.Packages)
	return encode(doc)
}

// newDocument is a document about one thing: name and what its namespace ends in are its own.
func newDocument(name, namespace, created, tool string, about *spdx.Package) *spdx.Document {
	return &spdx.Document{
		SPDXVersion: spdx.Version, DataLicense: spdx.DataLicense, SPDXIdentifier: "DOCUMENT", DocumentName: name,
		DocumentNamespace: "https://github.com/ironrail/ironrail/" + namespace,
		CreationInfo:      &spdx.CreationInfo{Created: created, Creators: []common.Creator{{CreatorType: "Tool", Creator: tool}}},
		Packages:          []*spdx.Package{about},
		Relationships:     []*spdx.Relationship{relate("DOCUMENT", "DESCRIBES", about.PackageSPDXIdentifier)},
	}
}

func encode(doc *spdx.Document) ([]byte, error) {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetEscapeHTML(false) // SPDX's own reader does not undo it in names of suppliers
	err := e.Encode(doc)
	return out.Bytes(), err
}

// otherLicenses are the licences of packages that are not of SPDX's list. Their texts are in
// the image, and differ between packages that give them one name.
func otherLicenses(packages []installed.Package) (all []*spdx.OtherLicense) {
	var names []string
	for _, p := range packages {
		for word := range strings.FieldsFuncSeq(p.License, func(c rune) bool { return c == ' ' || c == '(' || c == ')' }) {
			if strings.HasPrefix(word, installed.LicenseRef) {
				names = append(names, word)
			}
		}
	}
	slices.Sort(names)
	for _, name := range slices.Compact(names) {
		short := strings.TrimPrefix(name, installed.LicenseRef)
		all = append(all, &spdx.OtherLicense{LicenseIdentifier: name, LicenseName: short, ExtractedText: fmt.Sprintf("Packages of this image call it %q; its text is with them, in /usr/share/doc/PACKAGE/copyright or /usr/share/licenses/PACKAGE.", short)})
	}
	return all
}

func relate(from common.ElementID, how string, to common.ElementID) *spdx.Relationship {
	return &spdx.Relationship{RefA: common.MakeDocElementID("", string(from)), Relationship: how, RefB: common.MakeDocElementID("", string(to))}
}

// idOf is the identifier of a package.
func idOf(p installed.Package) common.ElementID {
	return common.ElementID("Package-" + cleanID(p.Name+"-"+p.Arch))
}

// cleanID replaces what may not be in an identifier: letters, digits, dots and hyphens may be (section 7.2).
func cleanID(name string) string {
	return strings.Map(func(c rune) rune {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '.' || c == '-' {
			return c
		}
		return '-'
	}, name)
}

// describe is one package. Scanners look it up by its package URL
// (github.com/package-url/purl-spec, type deb).
func describe(s manifest.System, p installed.Package, id common.ElementID) *spdx.Package {
	out := &spdx.Package{
		PackageName: p.Name, PackageSPDXIdentifier: id, PackageVersion: p.Version, PackageDownloadLocation: unknown, PackageHomePage: p.Homepage,
		PackageLicenseConcluded: unknown, PackageLicenseDeclared: cmp.Or(p.License, unknown), PackageCopyrightText: unknown,
		PackageExternalReferences: []*spdx.PackageExternalReference{{Category: common.CategoryPackageManager, RefType: common.TypePackageManagerPURL, Locator: packageURL(s, p)}},
	}
	if p.Supplier != "" {
		out.PackageSupplier = &common.Supplier{SupplierType: "Organization", Supplier: p.Supplier}
	}
	if p.Source != "" {
		out.PackageSourceInfo = "built from the source package " + p.Source
	}
	return out
}

// packageURL is such as pkg:deb/debian/libc6@2.36-9%2Bdeb12u8?arch=amd64&distro=debian-12, or
// pkg:rpm/rocky/bash@5.1.8-9.el9?arch=x86_64&epoch=1&distro=rocky-9: of rpm the epoch is no
// part of the version.
func packageURL(s manifest.System, p installed.Package) string {
	escape := func(text string) string { return strings.ReplaceAll(url.QueryEscape(text), "%3A", ":") }
	name, version, epoch := escape(strings.ToLower(p.Name)), p.Version, ""
	if p.Format == installed.RPM {
		name = escape(p.Name)
		if before, after, ok := strings.Cut(p.Version, ":"); ok {
			version, epoch = after, "&epoch="+escape(before)
		}
	}
	if s.Distribution != "" {
		name = escape(s.Distribution) + "/" + name
	}
	at := fmt.Sprintf("pkg:%s/%s@%s?arch=%s%s", p.Format, name, escape(version), escape(p.Arch), epoch)
	if s.Release != "" {
		at += "&distro=" + escape(s.Distribution+"-"+s.Release)
	}
	return at
}

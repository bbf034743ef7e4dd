// SPDX-License-Identifier: Apache-2.0

package sbom

import (
	"bytes"
	"cmp"
	"slices"
	"strings"
	"testing"

	spdxjson "github.com/spdx/tools-golang/json"
	"github.com/spdx/tools-golang/spdx"
	"github.com/spdx/tools-golang/spdxlib"

	"github.com/ironrail/ironrail/images/installed"
	"github.com/ironrail/ironrail/internal/manifest"
)

var image = Image{
	Name: "image.os", Recipe: manifest.Digest(nil), System: manifest.System{Distribution: "debian", Release: "12", Arch: "amd64", Kernel: "6.1.0-40-amd64"},
	Packages: []installed.Package{
		{Format: installed.Deb, Name: "libstdc++6", Version: "12.2.0-14+deb12u1", Arch: "amd64", Source: "gcc-12", License: "GPL-3.0-or-later AND (MIT OR LicenseRef-Artistic)", Supplier: "Debian GCC Maintainers <debian-gcc@lists.debian.org>"},
		{Format: installed.Deb, Name: "libstdc--6", Version: "1:2~rc1", Arch: "amd64", Homepage: "https://example.org/"},
		{Format: installed.Deb, Name: "tzdata", Version: "2025b-0+deb12u2", Arch: "all", License: "LicenseRef-public-domain"},
		{Format: installed.RPM, Name: "NetworkManager", Version: "1:1.52.0-3.el9_6", Arch: "x86_64", License: "GPL-2.0-or-later"},
	},
}

// SPDX's own reader takes the document, all that it refers to is in it, and each package
// has its URL.
func TestMarshal(t *testing.T) {
	t.Parallel()
	text, err := Marshal(image)
	if err != nil {
		t.Fatal(err)
	}
	again, err := Marshal(image)
	if err != nil || !bytes.Equal(text, again) {
		t.Errorf("another document each time (%v)", err)
	}
	doc, err := spdxjson.Read(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%v\n%s", err, text)
	}
	if err := spdxlib.ValidateDocument(doc); err != nil {
		t.Error(err)
	}
	if doc.SPDXVersion != "SPDX-2.3" || doc.DataLicense != "CC0-1.0" || !strings.HasSuffix(doc.DocumentNamespace, strings.Replace(image.Recipe, ":", "-", 1)) {
		t.Errorf("%s, %s, %s", doc.SPDXVersion, doc.DataLicense, doc.DocumentNamespace)
	}
	described, err := spdxlib.GetDescribedPackageIDs(doc)
	if err != nil || len(described) != 1 || described[0] != "Image" {
		t.Errorf("it describes %v (%v)", described, err)
	}
	want := []string{
		"pkg:deb/debian/libstdc%2B%2B6@12.2.0-14%2Bdeb12u1?arch=amd64&distro=debian-12",
		"pkg:deb/debian/libstdc--6@1:2~rc1?arch=amd64&distro=debian-12",
		"pkg:deb/debian/tzdata@2025b-0%2Bdeb12u2?arch=all&distro=debian-12",
		"pkg:rpm/debian/NetworkManager@1.52.0-3.el9_6?arch=x86_64&epoch=1&distro=debian-12",
	}
	if len(doc.Packages) != 1+len(want) {
		t.Fatalf("%d packages, want the image and %d", len(doc.Packages), len(want))
	}
	for n, p := range doc.Packages[1:] {
		checkPackage(t, p, image.Packages[n], want[n])
	}
	var others []string
	for _, l := range doc.OtherLicenses {
		others = append(others, l.LicenseIdentifier)
	}
	if !slices.Equal(others, []string{"LicenseRef-Artistic", "LicenseRef-public-domain"}) {
		t.Errorf("licences that are not of the list: %v", others)
	}
	for _, r := range doc.Relationships[1:] {
		if r.RefA.ElementRefID != "Image" || r.Relationship != "CONTAINS" {
			t.Errorf("relationship %+v", r)
		}
	}
}

func checkPackage(t *testing.T, p *spdx.Package, of installed.Package, url string) {
	t.Helper()
	if p.PackageName != of.Name || p.PackageVersion != of.Version || p.PackageHomePage != of.Homepage {
		t.Errorf("package %+v, want %+v", p, of)
	}
	if p.PackageLicenseDeclared != cmp.Or(of.License, "NOASSERTION") || p.PackageLicenseConcluded != "NOASSERTION" {
		t.Errorf("%s: licence %q, concluded %q", of.Name, p.PackageLicenseDeclared, p.PackageLicenseConcluded)
	}
	if len(p.PackageExternalReferences) != 1 || p.PackageExternalReferences[0].Locator != url {
		t.Errorf("%s: %+v, want %s", of.Name, p.PackageExternalReferences, url)
	}
	if of.Supplier != "" && (p.PackageSupplier == nil || p.PackageSupplier.Supplier != of.Supplier) {
		t.Errorf("%s: supplier %+v", of.Name, p.PackageSupplier)
	}
}

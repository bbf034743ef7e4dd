// SPDX-License-Identifier: Apache-2.0

package installed

import (
	"os"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/internal/lazyregexp"
	"github.com/ironrail/ironrail/internal/peertest"
)

func TestExpression(t *testing.T) {
	t.Parallel()
	for declared, want := range map[string]string{
		"": "", "GPL-2+": "GPL-2.0-or-later", "GPL-2": "GPL-2.0-only", "GPL-2.0+": "GPL-2.0-or-later", "LGPL-2.1": "LGPL-2.1-only", "GPLv2+": "GPL-2.0-or-later", "LGPLv2.1+": "LGPL-2.1-or-later",
		"GFDL-NIV-1.3+": "GFDL-1.3-no-invariants-or-later", "AGPL-3+": "AGPL-3.0-or-later", "GPL-4+": "LicenseRef-GPL-4-plus", "GPL": "LicenseRef-GPL", "GPL+": "LicenseRef-GPL-plus",
		"Expat": "MIT", "BSD-3-clause": "BSD-3-Clause", "apache-2.0": "Apache-2.0", "ASL 2.0": "Apache-2.0", "BSD": "LicenseRef-BSD", "Artistic": "LicenseRef-Artistic", "public-domain": "LicenseRef-public-domain",
		"GPL-1+ or Artistic":                      "GPL-1.0-or-later OR LicenseRef-Artistic",
		"GPLv2+ and MIT or ISC":                   "GPL-2.0-or-later AND MIT OR ISC",
		"GPL-1+ or Artistic, and BSD-3-clause":    "(GPL-1.0-or-later OR LicenseRef-Artistic) AND BSD-3-Clause",
		"(GPLv2+ or ASL 2.0) and Public Domain":   "(GPL-2.0-or-later OR Apache-2.0) AND LicenseRef-Public-Domain",
		"GPL-2 with Linux-syscall-note exception": "GPL-2.0-only WITH Linux-syscall-note", "GPL-2+ with OpenSSL exception": "LicenseRef-GPL-2-plus-with-OpenSSL-exception",
		"Apache-2.0 WITH LLVM-exception OR MIT": "Apache-2.0 WITH LLVM-exception OR MIT",
		"GPL-2+, MIT":                           "", "GPL-2 and": "", "or MIT": "", "(MIT": "", "MIT)": "", "a, and b, or c": "", "MIT (see below)": "", "*": "",
		"Permission to use, copy, modify": "", strings.Repeat("x", 81): "", strings.Repeat("MIT or ", 400) + "MIT": "",
	} {
		if got := expressionOf(declared); got != want {
			t.Errorf("%q is %q, want %q", declared, got, want)
		}
	}
}

const format = "Format: https://www.debian.org/doc/packaging-manuals/copyright-format/1.0/\nUpstream-Name: x\n\n"

func TestCopyright(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct{ text, want string }{
		"all":               {format + "Files: *\nCopyright: a\nLicense: GPL-2+\n\nFiles:\n debian/*\nLicense: Expat or GPL-2\n text\n\nFiles: z\nLicense: GPL-2+\n\nLicense: BSD-3-clause\n text", "GPL-2.0-or-later AND (MIT OR GPL-2.0-only)"},
		"one":               {format + "Files: *\nLicense: GPL-1+ or Artistic\n", "GPL-1.0-or-later OR LicenseRef-Artistic"},
		"each once":         {format + "Files: *\nLicense: GPL-2+\n\nFiles: x\nLicense: curl and (GPL-2+ and ISC)\n\nFiles: y\nLicense: ISC\n", "GPL-2.0-or-later AND ISC AND curl"},
		"another form":      {"This package was debianized by x.\n\nLicense: MIT\n", ""},
		"nothing":           {"", ""},
		"no files":          {format + "License: MIT\n text\n", ""},
		"a text, no name":   {format + "Files: *\nLicense: MIT\n\nFiles: x\nLicense:\n Permission is hereby granted\n", ""},
		"no licence at all": {format + "Files: *\nLicense: MIT\n\nFiles: x\nCopyright: a\n", ""},
	} {
		if got := licenseOfCopyright(c.text); got != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// spdx is an expression by its form (SPDX 2.3, annex D).
var spdx = lazyregexp.New(`^\(*[A-Za-z0-9][A-Za-z0-9.-]*\)*(( (AND|OR) \(*| WITH )[A-Za-z0-9][A-Za-z0-9.-]*\)*)*$`)

// TestPeerRead: of this machine's packages, all that dpkg lists are there, and what
// copyright files in Debian's form declare is an expression of SPDX.
func TestPeerRead(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "dpkg-query")
	list := Read(os.DirFS("/"))
	if list.Unread != "" || len(list.Packages) < 50 {
		t.Fatalf("%d packages: %s", len(list.Packages), list.Unread)
	}
	known := 0
	for _, p := range list.Packages {
		if p.License == "" {
			continue
		}
		known++
		if !spdx.MatchString(p.License) || strings.Count(p.License, "(") != strings.Count(p.License, ")") {
			t.Errorf("%s: %q", p.Name, p.License)
		}
	}
	if known < len(list.Packages)/4 {
		t.Errorf("%d of %d packages declare a licence", known, len(list.Packages))
	}
	t.Logf("%d of %d packages declare a licence", known, len(list.Packages))
	at := slices.IndexFunc(list.Packages, func(p Package) bool { return p.Name == "hostname" }) // essential, of one author
	if at < 0 || list.Packages[at].License != "GPL-2.0-only" {
		t.Errorf("hostname: %+v", list.Packages[max(at, 0)])
	}
}

// TestUnread: a root without a list that is read says why.
func TestUnread(t *testing.T) {
	t.Parallel()
	file := func(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }
	for want, root := range map[string]fstest.MapFS{
		"there is no database of dpkg or rpm":                                       {},
		"/var/lib/dpkg/status names no package":                                     {"var/lib/dpkg/status": file("")},
		"rpmdb.sqlite: it is no database of SQLite 3":                               {"var/lib/rpm/rpmdb.sqlite": file("x")},
		"its log of 4 bytes has changes":                                            {"var/lib/rpm/rpmdb.sqlite": file("x"), "var/lib/rpm/rpmdb.sqlite-wal": file("abcd")},
		"in the form of Berkeley DB":                                                {"var/lib/rpm/Packages": file("x")},
		"/usr/lib/sysimage/rpm/Packages.db is a database of rpm in the form of ndb": {"usr/lib/sysimage/rpm/Packages.db": file("x")},
	} {
		if l := Read(root); len(l.Packages) > 0 || !strings.Contains(l.Unread, want) {
			t.Errorf("%+v, want %q", l, want)
		}
	}
	with := fstest.MapFS{
		"var/lib/dpkg/status":        file("Package: a1\nStatus: install ok installed\nArchitecture: amd64\nVersion: 1\n\nPackage: b1\nStatus: install ok installed\nArchitecture: all\nVersion: 2\n"),
		"usr/share/doc/a1/copyright": file(format + "Files: *\nLicense: ISC\n"),
		"var/lib/rpm/rpmdb.sqlite":   file("of the tool rpm on a system of dpkg"),
	}
	want := []Package{{Format: Deb, Name: "a1", Version: "1", Arch: "amd64", License: "ISC"}, {Format: Deb, Name: "b1", Version: "2", Arch: "all"}}
	if l := Read(with); l.Unread != "" || !slices.Equal(l.Packages, want) {
		t.Errorf("%+v, want %+v", l, want)
	}
}

func FuzzLicense(f *testing.F) {
	f.Add(format + "Files: *\nLicense: GPL-1+ or Artistic, and (BSD-3-clause or GPL-2 with Linux-syscall-note exception)\n\nFiles:\n x\nLicense: public-domain\n")
	f.Fuzz(func(t *testing.T, text string) {
		for _, e := range []string{licenseOfCopyright(text), expressionOf(text)} {
			if e != "" && (!spdx.MatchString(e) || strings.Count(e, "(") != strings.Count(e, ")")) {
				t.Errorf("%q", e)
			}
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

// Package repodata reads and writes the metadata of repositories of RPM packages, as
// createrepo_c makes and dnf reads it: repomd.xml names the files, and primary.xml the
// packages (docs of createrepo_c and rpm-metadata; schemas of openSUSE's libzypp).
package repodata

import (
	"bytes"
	"compress/gzip"
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Names of files below a repository.
const (
	Index     = "repodata/repomd.xml"
	Signature = Index + ".asc" // of Index, detached, in ASCII armor
)

// Primary is the type of the file that names the packages.
const Primary = "primary"

// Types of the other files that a repository has to have.
const (
	filelists = "filelists"
	other     = "other"
)

// maxPrimary bounds primary.xml in bytes: those of whole distributions have some 100 MB.
const maxPrimary = 1 << 30

// File is a file that repomd.xml names.
type File struct {
	Type string // such as primary
	Name string // below the repository
	Sum  string // SHA-256, in hex
	Size int64
}

// Package is one package of a repository.
type Package struct {
	Name, Arch              string
	Epoch, Version, Release string // the epoch is "0" where there is none
	File                    string // below the repository
	Sum                     string // SHA-256, in hex
	Size                    int64
	Needs                   []string // names of what it requires
	Provides                []string // names of what it provides beside its own
}

// EVR is the version as people write it: EPOCH:VERSION-RELEASE, without an epoch of 0.
func (p Package) EVR() string {
	if p.Epoch == "" || p.Epoch == "0" {
		return p.Version + "-" + p.Release
	}
	return p.Epoch + ":" + p.Version + "-" + p.Release
}

type checksum struct {
	Type  string `xml:"type,attr"`
	Pkgid string `xml:"pkgid,attr,omitempty"`
	Sum   string `xml:",chardata"`
}

func (c checksum) sha256() (string, error) {
	sum := strings.TrimSpace(c.Sum)
	if b, err := hex.DecodeString(sum); c.Type != "sha256" || err != nil || len(b) != sha256.Size {
		return "", errkind.New(errkind.Invalid, "the checksum %q of type %q is none of SHA-256", sum, c.Type)
	}
	return sum, nil
}

type location struct {
	Href string `xml:"href,attr"`
}

type repomd struct {
	XMLName  xml.Name   `xml:"repomd"`
	XMLNS    string     `xml:"xmlns,attr,omitempty"`
	Revision string     `xml:"revision"`
	Data     []fileData `xml:"data"`
}

type fileData struct {
	Type     string    `xml:"type,attr"`
	Checksum checksum  `xml:"checksum"`
	Open     *checksum `xml:"open-checksum,omitempty"`
	Location location  `xml:"location"`
	Time     int64     `xml:"timestamp"`
	Size     int64     `xml:"size"`
	OpenSize int64     `xml:"open-size,omitempty"`
}

// ParseIndex reads repomd.xml. The three files that dnf asks for have to be among those that
// it names.
func ParseIndex(b []byte) ([]File, error) {
	var r repomd
	if err := xml.Unmarshal(b, &r); err != nil {
		return nil, errkind.New(errkind.Invalid, "repomd.xml: %w", err)
	}
	var all []File
	for _, d := range r.Data {
		sum, err := d.Checksum.sha256()
		if err != nil {
			return nil, errkind.New(errkind.Invalid, "repomd.xml: %s: %w", d.Type, err)
		}
		all = append(all, File{Type: d.Type, Name: d.Location.Href, Sum: sum, Size: d.Size})
	}
	for _, kind := range []string{Primary, filelists, other} {
		if Find(all, kind) == nil {
			return nil, errkind.New(errkind.Invalid, "repomd.xml names no file of type %s", kind)
		}
	}
	return all, nil
}

// Find returns the file of a type; nil where there is none.
func Find(all []File, kind string) *File {
	if i := slices.IndexFunc(all, func(f File) bool { return f.Type == kind }); i >= 0 {
		return &all[i]
	}
	return nil
}

type rpmPackage struct {
	Type    string `xml:"type,attr"`
	Name    string `xml:"name"`
	Arch    string `xml:"arch"`
	Version struct {
		Epoch   string `xml:"epoch,attr"`
		Version string `xml:"ver,attr"`
		Release string `xml:"rel,attr"`
	} `xml:"version"`
	Checksum checksum `xml:"checksum"`
	Size     struct {
		Package int64 `xml:"package,attr"`
	} `xml:"size"`
	Location location `xml:"location"`
	Format   struct {
		Requires struct {
			Entries []entry `xml:"entry"`
		} `xml:"requires"`
		Provides struct {
			Entries []entry `xml:"entry"`
		} `xml:"provides"`
	} `xml:"format"`
}

type entry struct {
	Name string `xml:"name,attr"`
}

// ParsePrimary reads primary.xml, packed by gzip. The content is bounded.
func ParsePrimary(packed io.Reader) (all []Package, err error) {
	plain, err := gzip.NewReader(packed)
	if err != nil {
		return nil, errkind.New(errkind.Invalid, "primary.xml: %w", err)
	}
	d := xml.NewDecoder(io.LimitReader(plain, maxPrimary))
	for {
		token, err := d.Token()
		if err == io.EOF {
			return all, nil
		}
		if err != nil {
			return nil, errkind.New(errkind.Invalid, "primary.xml: %w", err)
		}
		start, ok := token.(xml.StartElement)
		if !ok || start.Name.Local != "package" {
			continue
		}
		var x rpmPackage
		if err := d.DecodeElement(&x, &start); err != nil {
			return nil, errkind.New(errkind.Invalid, "primary.xml: %w", err)
		}
		p, err := x.parsed()
		if err != nil {
			return nil, err
		}
		all = append(all, p)
	}
}

// parsed checks what stands in an element.
func (x rpmPackage) parsed() (p Package, err error) {
	p = Package{Name: x.Name, Arch: x.Arch, Epoch: x.Version.Epoch, Version: x.Version.Version, Release: x.Version.Release, File: x.Location.Href, Size: x.Size.Package}
	if p.Sum, err = x.Checksum.sha256(); err != nil {
		return p, errkind.New(errkind.Invalid, "primary.xml: package %q: %w", p.Name, err)
	}
	_, bad := strconv.Atoi("0" + p.Epoch)
	if !IsName(p.Name) || !IsVersion(p.Version+"-"+p.Release) || !IsName(p.Arch) || bad != nil || p.Version == "" || p.Release == "" || p.File == "" {
		return p, errkind.New(errkind.Invalid, "primary.xml: package %q, version %q:%q-%q, architecture %q, file %q", p.Name, p.Epoch, p.Version, p.Release, p.Arch, p.File)
	}
	for _, e := range x.Format.Requires.Entries {
		p.Needs = append(p.Needs, e.Name)
	}
	for _, e := range x.Format.Provides.Entries {
		if e.Name != p.Name {
			p.Provides = append(p.Provides, e.Name)
		}
	}
	return p, nil
}

// IsName reports whether s may be the name of an RPM package (rpm's manual, "Spec file
// format").
func IsName(s string) bool { return isWord(s, "._+-") }

// IsVersion reports whether s may be VERSION-RELEASE, with an epoch or without, or a pattern
// without its stars.
func IsVersion(s string) bool { return isWord(s, "._+-~^:") }

// isWord reports whether s begins with a letter or digit and continues with those and the
// given signs.
func isWord(s, signs string) bool {
	for i, c := range s {
		if !(c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || i > 0 && strings.ContainsRune(signs, c)) {
			return false
		}
	}
	return s != ""
}

// Write makes the metadata of packages: files by their names below the repository. They have
// what a simulation needs, and no lists of files.
func Write(packages []Package) (map[string][]byte, error) {
	var body bytes.Buffer
	for _, p := range packages {
		fmt.Fprintf(&body, "<package type=\"rpm\"><name>%s</name><arch>%s</arch><version epoch=\"%s\" ver=\"%s\" rel=\"%s\"/><checksum type=\"sha256\" pkgid=\"YES\">%s</checksum>"+
			"<summary/><description/><packager/><url/><time file=\"0\" build=\"0\"/><size package=\"%d\" installed=\"0\" archive=\"0\"/><location href=\"%s\"/>"+
			"<format><rpm:provides><rpm:entry name=\"%[1]s\" flags=\"EQ\" epoch=\"%[3]s\" ver=\"%[4]s\" rel=\"%[5]s\"/>",
			escape(p.Name), escape(p.Arch), escape(p.Epoch), escape(p.Version), escape(p.Release), p.Sum, p.Size, escape(p.File))
		for _, name := range p.Provides {
			fmt.Fprintf(&body, "<rpm:entry name=\"%s\"/>", escape(name))
		}
		body.WriteString("</rpm:provides><rpm:requires>")
		for _, name := range p.Needs {
			fmt.Fprintf(&body, "<rpm:entry name=\"%s\"/>", escape(name))
		}
		body.WriteString("</rpm:requires></format></package>\n")
	}
	head := `<?xml version="1.0" encoding="UTF-8"?>` + "\n"
	index := repomd{XMLNS: "http://linux.duke.edu/metadata/repo", Revision: "0"}
	files := map[string][]byte{}
	for _, f := range []struct{ kind, text string }{
		{Primary, fmt.Sprintf(`%s<metadata xmlns="http://linux.duke.edu/metadata/common" xmlns:rpm="http://linux.duke.edu/metadata/rpm" packages="%d">`+"\n%s</metadata>\n", head, len(packages), body.String())},
		{filelists, head + `<filelists xmlns="http://linux.duke.edu/metadata/filelists" packages="0"/>` + "\n"},
		{other, head + `<otherdata xmlns="http://linux.duke.edu/metadata/other" packages="0"/>` + "\n"},
	} {
		packed, err := pack([]byte(f.text))
		if err != nil {
			return nil, err
		}
		sum := sumOf(packed)
		name := "repodata/" + sum + "-" + f.kind + ".xml.gz"
		files[name] = packed
		index.Data = append(index.Data, fileData{Type: f.kind, Checksum: checksum{Type: "sha256", Sum: sum}, Open: &checksum{Type: "sha256", Sum: sumOf([]byte(f.text))},
			Location: location{name}, Size: int64(len(packed)), OpenSize: int64(len(f.text))})
	}
	b, err := xml.MarshalIndent(index, "", "  ")
	if err != nil {
		return nil, err
	}
	files[Index] = append([]byte(head), append(b, '\n')...)
	return files, nil
}

func sumOf(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func escape(s string) string {
	var b bytes.Buffer
	_ = xml.EscapeText(&b, []byte(s)) // into memory
	return b.String()
}

func pack(b []byte) ([]byte, error) {
	var out bytes.Buffer
	w := gzip.NewWriter(&out)
	if _, err := w.Write(b); err != nil {
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	return out.Bytes(), nil
}

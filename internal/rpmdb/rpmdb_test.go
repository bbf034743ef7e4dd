// SPDX-License-Identifier: Apache-2.0

package rpmdb

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
)

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// command runs a program and returns what it prints.
func command(t *testing.T, argv ...string) string {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), argv[0], argv[1:]...)
	cmd.Env = append(os.Environ(), "LC_ALL=C.UTF-8", "HOME="+os.TempDir())
	var failed bytes.Buffer
	cmd.Stderr = &failed
	out, err := cmd.Output()
	if err != nil {
		t.Fatalf("%q: %v\n%s", argv, err, failed.String())
	}
	return string(out)
}

// TestPeerInstalled: what rpm itself lists of a database that it made is what is read: with
// and without an epoch, rows on chains of pages, tables of several levels, a package that
// was removed.
func TestPeerInstalled(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "rpm", "rpmbuild")
	dir := t.TempDir()
	var spec strings.Builder
	spec.WriteString("Name: base\nEpoch: 2\nVersion: 1.0~rc1\nRelease: 3.el9\nSummary: s\nLicense: GPLv2+ and MIT\nURL: https://example.org/\nVendor: Example\nBuildArch: noarch\n%description\nx\n%files\n")
	for n := range 60 {
		fmt.Fprintf(&spec, "%%package -n sub%d\nSummary: s\nLicense: Apache-2.0 OR BSD-3-Clause\nVersion: %d\nEpoch: 0\n", n, n+1)
		for i := range n * 20 { // rows of 1 to 30 KiB
			fmt.Fprintf(&spec, "Provides: a-capability-with-a-long-name(%d)\n", i)
		}
		fmt.Fprintf(&spec, "%%description -n sub%d\nx\n%%files -n sub%d\n", n, n)
	}
	must(t, os.WriteFile(filepath.Join(dir, "base.spec"), []byte(spec.String()), 0o644))
	command(t, "rpmbuild", "-bb", "--quiet", "--define", "_topdir "+dir, filepath.Join(dir, "base.spec"))
	rpms, err := filepath.Glob(filepath.Join(dir, "RPMS/*/*.rpm"))
	must(t, err)
	rpm := func(args ...string) string {
		return command(t, append([]string{"rpm", "--root", filepath.Join(dir, "root"), "--dbpath", "/var/lib/rpm"}, args...)...)
	}
	must(t, os.MkdirAll(filepath.Join(dir, "root"), 0o755))
	rpm("--initdb")
	rpm(append([]string{"-i", "--nodeps", "--force"}, rpms...)...)
	rpm("-e", "--nodeps", "sub7")
	want := strings.Split(strings.TrimSpace(rpm("-qa", "--qf", "%{NAME} %|EPOCH?{%{EPOCH}:}|%{VERSION}-%{RELEASE} %{ARCH} %{SOURCERPM} %{VENDOR} %{URL} %{LICENSE}\n")), "\n")

	path := filepath.Join(dir, "root", Files[1])
	if info, err := os.Stat(path + Log); err == nil && info.Size() > 0 {
		t.Fatalf("rpm leaves %d bytes in its log", info.Size())
	}
	f, err := os.Open(path)
	must(t, err)
	defer f.Close()
	info, err := f.Stat()
	must(t, err)
	list, err := Installed(f, info.Size())
	must(t, err)
	var got []string
	for _, p := range list {
		got = append(got, strings.Join([]string{p.Name, p.Version, p.Arch, p.SourceRPM, p.Vendor, p.URL, p.License}, " "))
	}
	slices.Sort(got)
	slices.Sort(want)
	if len(got) != 60 || !slices.Equal(got, want) {
		t.Errorf("%d packages:\n%s\nrpm lists %d:\n%s", len(got), strings.Join(got, "\n"), len(want), strings.Join(want, "\n"))
	}
}

// entry is an entry of a header.
type entry struct {
	tag, kind uint32
	value     string
}

// header is a header of entries as rpm stores it.
func header(entries ...entry) []byte {
	var index, store []byte
	for _, e := range entries {
		for _, v := range []uint32{e.tag, e.kind, uint32(len(store)), 1} {
			index = binary.BigEndian.AppendUint32(index, v)
		}
		store = append(store, e.value...)
	}
	b := binary.BigEndian.AppendUint32(nil, uint32(len(entries)))
	b = binary.BigEndian.AppendUint32(b, uint32(len(store)))
	return append(append(b, index...), store...)
}

func text(tag uint32, value string) entry { return entry{tag, typeString, value + "\x00"} }

// small is a database of two pages: a schema that names table Packages, and its rows.
func small(blobs ...[]byte) []byte {
	const size = 4096
	record := func(kinds []byte, body string) []byte {
		return append(append([]byte{byte(len(kinds) + 1)}, kinds...), body...)
	}
	page := func(p []byte, head int, records ...[]byte) {
		p[head] = leafPage
		binary.BigEndian.PutUint16(p[head+3:], uint16(len(records)))
		at := size
		for i, r := range records {
			cell := append([]byte{0x80 | byte(len(r)>>7), byte(len(r) & 0x7f), byte(i + 1)}, r...)
			at -= len(cell)
			copy(p[at:], cell)
			binary.BigEndian.PutUint16(p[head+8+2*i:], uint16(at))
		}
	}
	b := make([]byte, 2*size)
	copy(b, magic)
	binary.BigEndian.PutUint16(b[16:], size)
	page(b[:size], 100, record([]byte{13 + 2*5, 13 + 2*8, 13 + 2*8, 1, 0}, "tablePackagesPackages\x02"))
	var rows [][]byte
	for _, blob := range blobs {
		kind := 12 + 2*len(blob)
		rows = append(rows, record([]byte{0, 0x80 | byte(kind>>7), byte(kind & 0x7f)}, string(blob)))
	}
	page(b[size:], 0, rows...)
	return b
}

func read(b []byte) ([]Package, error) { return Installed(bytes.NewReader(b), int64(len(b))) }

// TestInstalled: headers with and without what they need, and files that are damaged.
func TestInstalled(t *testing.T) {
	t.Parallel()
	whole := header(text(tagName, "bash"), text(tagVersion, "5.1.8"), text(tagRelease, "9.el9"), entry{tagEpoch, typeInt32, "\x00\x00\x00\x01"}, text(tagArch, "x86_64"), entry{tagLicense, typeI18N, "GPLv3+\x00"})
	list, err := read(small(whole, header(text(tagName, "gpg-pubkey"), text(tagVersion, "8483c65d"), text(tagRelease, "5ccc5b19"))))
	want := []Package{{Name: "bash", Version: "1:5.1.8-9.el9", Arch: "x86_64", License: "GPLv3+"}, {Name: "gpg-pubkey", Version: "8483c65d-5ccc5b19"}}
	if err != nil || !slices.Equal(list, want) {
		t.Errorf("%+v, %v; want %+v", list, err, want)
	}
	change := func(at int, to ...byte) []byte {
		b := small(whole)
		copy(b[at:], to)
		return b
	}
	for name, b := range map[string][]byte{
		"nothing": nil, "text": []byte(strings.Repeat("x", 5000)), "cut off": small(whole)[:4096], "pages of 3 bytes": change(16, 0, 3), "a schema of an index": change(100, 0x0a),
		"no table": change(4096-10, 'x', 'x'), "its own page again": change(4095, 1), "a page that is not there": change(4095, 9), "a leaf of no kind": change(4096, 0),
		"too many cells": change(4096+3, 0xff), "a cell outside": change(4096+8, 0x0f, 0xff), "no name": small(header(text(tagVersion, "1"), text(tagRelease, "1"))),
		"no end": small(header(entry{tagName, typeString, "x"})), "an entry outside": small(header(entry{tagName, typeString, ""})), "too many entries": small([]byte{0xff, 0, 0, 0, 0, 0, 0, 0}), "an empty header": small(nil),
	} {
		if list, err := read(b); errkind.Of(err) != errkind.Invalid || list != nil {
			t.Errorf("%s: %+v, %v", name, list, err)
		}
	}
}

func FuzzInstalled(f *testing.F) {
	f.Add(small(header(text(tagName, "bash"), text(tagVersion, "5.1.8"), text(tagRelease, "9.el9"), text(tagArch, "x86_64"))))
	f.Add(small())
	f.Fuzz(func(t *testing.T, b []byte) {
		list, err := read(b)
		if err != nil && list != nil {
			t.Error("a list beside an error")
		}
		for _, p := range list {
			if p.Name == "" || p.Version == "" {
				t.Errorf("package %+v", p)
			}
		}
	})
}

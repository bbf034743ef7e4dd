// SPDX-License-Identifier: Apache-2.0

package raw

import (
	"bytes"
	"crypto/sha256"
	"crypto/sha512"
	"encoding/hex"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/hashicorp/hcl/v2"

	"github.com/ironrail/ironrail/images/internal/gpgtest"
	"github.com/ironrail/ironrail/images/store"
	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/manifest"
	"github.com/ironrail/ironrail/inventory"
	"github.com/ironrail/ironrail/inventory/diag"
)

// content is a source, which is compared and not unpacked here.
var content = bytes.Repeat([]byte("disk"), 50_000)

func sum256(b []byte) string { s := sha256.Sum256(b); return hex.EncodeToString(s[:]) }
func sum512(b []byte) string { s := sha512.Sum512(b); return hex.EncodeToString(s[:]) }

// signedBlock is a block whose attributes are in lines 5 to 7 of a file.
func signedBlock(v inventory.VendorSignature) *inventory.Image {
	at := func(line int) hcl.Range {
		return hcl.Range{Filename: "site.hcl", Start: hcl.Pos{Line: line, Column: 3}}
	}
	return &inventory.Image{Block: inventory.Block{Kind: kindName, Name: "os", Ranges: map[string]hcl.Range{attrList: at(5), attrSignature: at(6), attrKey: at(7)}},
		Source: "disk.img", Checksum: "sha256:" + sum256(content), Vendor: v}
}

// fetched is the builder of a block after its source was read.
func fetched(t *testing.T, i *inventory.Image, site string) (*builder, error) {
	t.Helper()
	r := Kind{}.Recipe(i, site)
	if err := r.Check(); err != nil {
		return nil, err
	}
	b := &builder{recipe: r.(Recipe), dir: t.TempDir(), say: func(string) {}}
	return b, b.fetch(t.Context())
}

// TestPeerVendor: a source is taken when its vendor signed it, by a list in any form or
// itself, and refused with the cause and the place in the site's files when not.
func TestPeerVendor(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	key, other := h.NewKey("vendor", "ed25519", "0"), h.NewKey("other", "ed25519", "0")
	public := h.Public(key)
	bsd := "# disk.img: 200000 bytes\nSHA256 (disk.img) = " + sum256(content) + "\n"
	long := sum512(content) + "  disk.img\n"
	site := t.TempDir()
	for name, text := range map[string]string{
		"disk.img": string(content), "CHECKSUM": bsd, "SHA512SUMS": long, "old": sum256(nil) + "  disk.img\n", "none": sum256(content) + "  disk-1.img\n",
		"bad512": sum512(nil) + "  disk.img\n", "both": bsd + "SHA512 (disk.img) = " + sum512(nil) + "\n",
	} {
		write := func(name string, text []byte) {
			if err := os.WriteFile(filepath.Join(site, name), text, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		write(name, []byte(text))
		write(name+".sig", h.Sign(key, "--detach-sign", text))
		write(name+".asc", h.Sign(key, "--clear-sign", text))
		write(name+".other", h.Sign(other, "--clear-sign", text))
	}
	by := func(list, signature string) inventory.VendorSignature {
		return inventory.VendorSignature{List: list, Signature: signature, Key: public}
	}
	for name, c := range map[string]struct {
		by   inventory.VendorSignature
		kind errkind.Kind
		says string // empty: it is taken
	}{
		"clear-signed list":        {by("CHECKSUM.asc", ""), 0, ""},
		"list and signature":       {by("CHECKSUM", "CHECKSUM.sig"), 0, ""},
		"SHA-512":                  {by("SHA512SUMS", "SHA512SUMS.sig"), 0, ""},
		"the image itself":         {by("", "disk.img.sig"), 0, ""},
		"another key":              {by("CHECKSUM.other", ""), errkind.Mismatch, "site.hcl:5:3: checksum_list: CHECKSUM.other: it is signed by key " + other + ", and signing_key has " + key},
		"another list":             {by("CHECKSUM", "old.sig"), errkind.Corrupt, "site.hcl:5:3: checksum_list: CHECKSUM: the signature by key " + key + " is not of what is here"},
		"another image":            {by("", "old.sig"), errkind.Corrupt, "site.hcl:6:3: signature: old.sig: the signature by key " + key + " is not of what is here"},
		"another checksum":         {by("old.asc", ""), errkind.Mismatch, "site.hcl:5:3: checksum_list: old.asc: it has SHA-256 " + sum256(nil) + " for disk.img, which is " + sum256(content)},
		"another SHA-512":          {by("bad512.asc", ""), errkind.Mismatch, "site.hcl:5:3: checksum_list: bad512.asc: it has SHA-512 " + sum512(nil) + " for disk.img"},
		"SHA-256 alone agrees":     {by("both.asc", ""), errkind.Mismatch, "both.asc: it has SHA-512"},
		"list without the file":    {by("none.asc", ""), errkind.NotFound, `site.hcl:5:3: checksum_list: none.asc: it has no checksum for disk.img; the checksum of the block is there for ["disk-1.img"]`},
		"list without a signature": {by("CHECKSUM", ""), errkind.Refused, "CHECKSUM is not signed"},
		"signed twice":             {by("CHECKSUM.asc", "CHECKSUM.sig"), errkind.Refused, "CHECKSUM.asc has its signature in itself"},
		"signed text beside":       {by("CHECKSUM", "CHECKSUM.asc"), errkind.Refused, "CHECKSUM.asc is a signed text of its own"},
		"signed text alone":        {by("", "CHECKSUM.asc"), errkind.Refused, "site.hcl:6:3: signature: CHECKSUM.asc is a signed text, and no signature of the image"},
		"no list":                  {by("absent", ""), errkind.NotFound, "site.hcl:5:3: checksum_list: open "},
		"no key":                   {inventory.VendorSignature{List: "CHECKSUM.asc"}, errkind.Refused, "image os: site.hcl:5:3: a signature says nothing without signing_key"},
		"nothing signed":           {inventory.VendorSignature{Key: public}, errkind.Refused, "image os: site.hcl:7:3: signing_key is for nothing"},
		"damaged key":              {inventory.VendorSignature{List: "CHECKSUM.asc", Key: public[:200]}, errkind.Refused, "image os: site.hcl:7:3: signing_key is cut off or damaged"},
		"a URL of another kind":    {by("ftp://vendor.example/CHECKSUM", ""), errkind.Refused, `image os: site.hcl:5:3: checksum_list "ftp://vendor.example/CHECKSUM" is no URL`},
		"a password":               {by("https://a:b@vendor.example/CHECKSUM", ""), errkind.Refused, "image os: site.hcl:5:3: checksum_list has a password in it"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, err := fetched(t, signedBlock(c.by), site)
			if c.says != "" {
				if errkind.Of(err) != c.kind || !strings.Contains(err.Error(), c.says) {
					t.Errorf("kind %v: %v; want %v that says %q", errkind.Of(err), err, c.kind, c.says)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			want := manifest.Vendor{Key: key, File: "disk.img", SHA256: sum256(content)}
			if c.by.List != "" {
				list, err := os.ReadFile(filepath.Join(site, c.by.List))
				if err != nil {
					t.Fatal(err)
				}
				want.List = sum256(list)
			}
			if name == "SHA-512" {
				want.SHA512 = sum512(content)
			}
			if *b.signed.by != want {
				t.Errorf("recorded is %+v, want %+v", *b.signed.by, want)
			}
		})
	}
}

// TestPeerVendorFetch: what is fetched beforehand is verified beforehand, and the build
// asks for nothing; a list that is not believed is fetched anew.
func TestPeerVendorFetch(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	key := h.NewKey("vendor", "ed25519", "0")
	list := []byte(sum512(content) + "  disk.img\n")
	files := map[string][]byte{"/disk.img": content, "/SHA512SUMS": list, "/SHA512SUMS.sign": h.Sign(key, "--detach-sign", string(list), "--armor")}
	asked := map[string]int{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked[r.URL.Path]++
		http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(files[r.URL.Path]))
	}))
	defer server.Close()
	i := signedBlock(inventory.VendorSignature{List: server.URL + "/SHA512SUMS", Signature: server.URL + "/SHA512SUMS.sign", Key: h.Public(key)})
	i.Source = server.URL + "/disk.img?mirror=1"
	r, dir := Kind{}.Recipe(i, "").(Recipe), t.TempDir()
	files["/SHA512SUMS"] = []byte("x" + string(list))
	if err := r.Fetch(t.Context(), dir, func(string) {}); errkind.Of(err) != errkind.Corrupt || asked["/disk.img"] != 0 {
		t.Fatalf("a list that is changed: %v; the image was asked for %d times", err, asked["/disk.img"])
	}
	files["/SHA512SUMS"] = list
	for range 2 {
		if err := r.Fetch(t.Context(), dir, func(string) {}); err != nil {
			t.Fatal(err)
		}
	}
	server.Close()
	b := builder{recipe: r.WithDownloads(dir).(Recipe), dir: t.TempDir(), say: func(string) {}}
	if err := b.fetch(t.Context()); err != nil || b.signed.by.Key != key || asked["/SHA512SUMS"] != 2 || asked["/disk.img"] != 1 {
		t.Errorf("%v, signed by %s; asked %v", err, b.signed.by.Key, asked)
	}
}

// TestPeerVendorKept: an image is stored with what its vendor signed, and that is verified
// as often as the image is.
func TestPeerVendorKept(t *testing.T) {
	needMakers(t)
	h := gpgtest.New(t)
	key := h.NewKey("vendor", "ed25519", "0")
	r := recipe(t, disk{}.image(t))
	list := strings.TrimPrefix(r.Checksum, "sha256:") + " *" + r.Source + "\n"
	for name, text := range map[string][]byte{"SHA256SUMS": []byte(list), "SHA256SUMS.gpg": h.Sign(key, "--detach-sign", list)} {
		if err := os.WriteFile(filepath.Join(r.Site, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r.Vendor.VendorSignature = inventory.VendorSignature{List: "SHA256SUMS", Signature: "SHA256SUMS.gpg", Key: h.Public(key)}
	src, err := r.Build(t.Context(), t.TempDir(), func(string) {})
	if err != nil {
		t.Fatal(err)
	}
	base := t.TempDir()
	own, err := store.Key(filepath.Join(base, "key"))
	if err != nil {
		t.Fatal(err)
	}
	s, err := store.Open(filepath.Join(base, "images"), own)
	if err != nil {
		t.Fatal(err)
	}
	verify := func(change func(*manifest.Vendor)) error {
		changed, v := src, *src.Vendor
		change(&v)
		changed.Vendor = &v
		digest, err := s.Put(t.Context(), changed, func(string) {})
		if err != nil {
			t.Fatal(err)
		}
		return s.Verify(t.Context(), digest)
	}
	if err := verify(func(v *manifest.Vendor) {
		if want := (manifest.Vendor{Key: key, File: r.Source, SHA256: strings.TrimPrefix(r.Checksum, "sha256:"), List: sum256([]byte(list))}); *v != want {
			t.Errorf("recorded is %+v, want %+v", *v, want)
		}
	}); err != nil {
		t.Error(err)
	}
	for want, change := range map[string]func(*manifest.Vendor){
		"not the bytes that were built":  func(v *manifest.Vendor) { v.Key = "00" },
		"it has SHA-256":                 func(v *manifest.Vendor) { v.SHA256 = sum256(nil) },
		"it has no checksum for another": func(v *manifest.Vendor) { v.File = "another" },
	} {
		if err := verify(change); errkind.Of(err) != errkind.Corrupt || !strings.Contains(err.Error(), want) {
			t.Errorf("%v; want one that says %q", err, want)
		}
	}
}

// TestPeerCheckVendor: what is wrong with a signature is found when the site is loaded, as
// far as it lies in the site's folder; that a key has expired, or that a file is absent, is
// a warning.
func TestPeerCheckVendor(t *testing.T) {
	t.Parallel()
	h := gpgtest.New(t)
	const then = "--faked-system-time=20200101T000000!"
	key, ended := h.NewKey("vendor", "ed25519", "0"), h.NewKey("ended", "ed25519", "1d", then)
	good := sum256(content) + "  disk.img\n"
	dir := t.TempDir()
	for name, text := range map[string][]byte{
		"vendor.asc": []byte(h.Public(key)), "ended.asc": []byte(h.Public(ended)), "SHA256SUMS": []byte(good), "SHA256SUMS.gpg": h.Sign(key, "--detach-sign", good),
		"clear": h.Sign(key, "--clear-sign", good), "ended": h.Sign(ended, "--clear-sign", good, then), "old": h.Sign(key, "--clear-sign", sum256(nil)+"  disk.img\n"),
		"none": h.Sign(key, "--clear-sign", sum256(nil)+"  other.img\n"), "changed": bytes.Replace(h.Sign(key, "--clear-sign", good), []byte("disk.img"), []byte("disk.raw"), 1),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for _, c := range []struct {
		attributes string
		place      string // of the one finding; empty: none
		severity   diag.Severity
		says       string
	}{
		{"checksum_list = \"SHA256SUMS\"\n signature = \"SHA256SUMS.gpg\"\n signing_key = file(\"vendor.asc\")", "", 0, ""},
		{"checksum_list = \"clear\"\n signing_key = file(\"vendor.asc\")", "", 0, ""},
		{"checksum_list = \"https://vendor.example/SHA256SUMS\"\n signing_key = file(\"vendor.asc\")", "", 0, ""},
		{"checksum_list = \"/srv/SHA256SUMS\"\n signing_key = file(\"vendor.asc\")", "", 0, ""},
		{"signature = \"disk.img.sig\"\n signing_key = file(\"vendor.asc\")", "", 0, ""},
		{"checksum_list = \"clear\"", "5:18", diag.Error, "says nothing without signing_key"},
		{"signing_key = file(\"vendor.asc\")", "5:16", diag.Error, "is for nothing"},
		{"checksum_list = \"clear\"\n signing_key = \"x\"", "6:16", diag.Error, "is no OpenPGP public key"},
		{"checksum_list = \"old\"\n signing_key = file(\"vendor.asc\")", "5:18", diag.Error, "it has SHA-256"},
		{"checksum_list = \"none\"\n signing_key = file(\"vendor.asc\")", "5:18", diag.Error, "it has no checksum for disk.img"},
		{"checksum_list = \"changed\"\n signing_key = file(\"vendor.asc\")", "5:18", diag.Error, "is not of what is here"},
		{"checksum_list = \"clear\"\n signing_key = file(\"ended.asc\")", "5:18", diag.Error, "it is signed by key " + key},
		{"checksum_list = \"SHA256SUMS\"\n signing_key = file(\"vendor.asc\")", "5:18", diag.Error, "is not signed"},
		{"checksum_list = \"ended\"\n signing_key = file(\"ended.asc\")", "5:18", diag.Warning, "has expired"},
		{"checksum_list = \"SHA256SUMS\"\n signature = \"absent\"\n signing_key = file(\"vendor.asc\")", "6:14", diag.Warning, "absent"},
	} {
		text := fmt.Sprintf("site \"s\" {}\nimage \"raw\" \"os\" {\n  source   = \"disk.img\"\n  checksum = \"sha256:%s\"\n %s\n}\n", sum256(content), c.attributes)
		if err := os.WriteFile(filepath.Join(dir, "site.hcl"), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		kinds := inventory.DefaultKinds()
		spec := kinds.Image[kindName]
		spec.Check = Check(time.Now(), dir)
		kinds.Image[kindName] = spec
		_, found, _ := inventory.Load(dir, inventory.Options{Kinds: &kinds})
		var of []diag.Diagnostic
		for _, d := range found {
			if d.Check == checkName {
				of = append(of, d)
			}
		}
		if c.place == "" {
			if len(of) > 0 {
				t.Errorf("%s: %+v", c.attributes, of)
			}
			continue
		}
		if len(of) != 1 || fmt.Sprintf("%d:%d", of[0].Subject.Start.Line, of[0].Subject.Start.Column) != c.place || of[0].Severity != c.severity || !strings.Contains(of[0].Detail, c.says) {
			t.Errorf("%s: %+v; want %s that says %q", c.attributes, of, c.place, c.says)
		}
	}
}

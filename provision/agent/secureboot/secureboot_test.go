// SPDX-License-Identifier: Apache-2.0

package secureboot

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/binary"
	"encoding/hex"
	"math/big"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"slices"
	"testing"
	"testing/fstest"
	"time"

	"github.com/ironrail/ironrail/internal/efisig"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// The authorities for programs of others, as Microsoft calls them.
const (
	ca2011 = "Microsoft Corporation UEFI CA 2011"
	ca2023 = "Microsoft UEFI CA 2023"
)

// certificate is one of an authority with a name.
func certificate(t *testing.T, name string) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	c := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: name}, NotAfter: time.Now().Add(time.Hour), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, c, c, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return der
}

// list is an EFI_SIGNATURE_LIST of one signature.
func list(kind, data []byte) []byte {
	b := slices.Clone(kind)
	b = binary.LittleEndian.AppendUint32(b, uint32(efisig.ListSize+efisig.OwnerSize+len(data)))
	b = binary.LittleEndian.AppendUint32(b, 0)
	b = binary.LittleEndian.AppendUint32(b, uint32(efisig.OwnerSize+len(data)))
	return append(append(b, make([]byte, efisig.OwnerSize)...), data...)
}

func TestRead(t *testing.T) {
	t.Parallel()
	old, young, vendor := list([]byte(efisig.X509), certificate(t, ca2011)), list([]byte(efisig.X509), certificate(t, ca2023)), list([]byte(efisig.X509), certificate(t, "ACME Platform CA"))
	sha256 := list(bytes.Repeat([]byte{0x26}, 16), make([]byte, 32)) // a hash: of no authority
	on, off := []byte{6, 0, 0, 0, 1}, []byte{6, 0, 0, 0, 0}
	db := func(lists ...[]byte) []byte { return append([]byte{0x27, 0, 0, 0}, slices.Concat(lists...)...) }
	for name, c := range map[string]struct {
		on, setup, db []byte // variables; nil: there is none
		lockdown      string
		want          wire.SecureBoot
	}{
		"2011 only":         {on, off, db(old), "none [integrity] confidentiality", wire.SecureBoot{State: wire.SecureBootOn, Lockdown: "integrity", Authorities: []string{ca2011}}},
		"2023 only":         {on, off, db(young), "none integrity [confidentiality]", wire.SecureBoot{State: wire.SecureBootOn, Lockdown: "confidentiality", Authorities: []string{ca2023}}},
		"both":              {on, off, db(vendor, sha256, old, young), "", wire.SecureBoot{State: wire.SecureBootOn, Authorities: []string{"ACME Platform CA", ca2011, ca2023}}},
		"none of Microsoft": {on, off, db(vendor), "[none] integrity confidentiality", wire.SecureBoot{State: wire.SecureBootOn, Lockdown: "none", Authorities: []string{"ACME Platform CA"}}},
		"off":               {off, off, db(old), "[none] integrity", wire.SecureBoot{State: wire.SecureBootOff, Lockdown: "none", Authorities: []string{ca2011}}},
		"setup mode":        {off, on, nil, "", wire.SecureBoot{State: wire.SecureBootSetup}},
		"no Secure Boot":    {nil, off, nil, "", wire.SecureBoot{State: wire.SecureBootAbsent}},
		"variables hidden":  {nil, nil, nil, "none [integrity]", wire.SecureBoot{Lockdown: "integrity"}},
		"cut off":           {on, off, db(old, young)[:len(old)+40], "", wire.SecureBoot{State: wire.SecureBootOn, Authorities: []string{ca2011}, Damaged: true}},
		"no certificate":    {on, off, db(list([]byte(efisig.X509), []byte("x")), young), "", wire.SecureBoot{State: wire.SecureBootOn, Authorities: []string{ca2023}, Damaged: true}},
	} {
		if c.db != nil {
			certs, _ := certificates(c.db[4:])
			for _, k := range trusted(certs) {
				c.want.Keys = append(c.want.Keys, k.Fingerprint)
			}
		}
		tree := fstest.MapFS{"sys/firmware/efi/fw_platform_size": {Data: []byte("64\n")}}
		for variable, b := range map[string][]byte{"SecureBoot" + global: c.on, "SetupMode" + global: c.setup, "db" + database: c.db} {
			if b != nil {
				tree[variables+"/"+variable] = &fstest.MapFile{Data: b}
			}
		}
		if c.lockdown != "" {
			tree[lockdown] = &fstest.MapFile{Data: []byte(c.lockdown + "\n")}
		}
		if got := Read(sysfs.Of(tree)); got == nil || !reflect.DeepEqual(*got, c.want) {
			t.Errorf("%s: %+v, want %+v", name, got, c.want)
		}
		if got := Keys(sysfs.Of(tree)); len(got) > 0 && (c.want.Damaged || got[0].Name != c.want.Authorities[0] || got[0].Fingerprint != c.want.Keys[0]) || len(got) == 0 != (c.want.Damaged || c.db == nil) {
			t.Errorf("%s: trusted %+v", name, got)
		}
	}
	if got := Read(sysfs.Of(fstest.MapFS{"sys/kernel": {Mode: os.ModeDir}})); got != nil {
		t.Errorf("a BIOS shows %+v", got)
	}
}

// TestOwnerKeys: the keys of db and of shim's list are named, the list as variables, one of
// which may go on in the next, and as the kernel's table.
func TestOwnerKeys(t *testing.T) {
	t.Parallel()
	sum := func(der []byte) string {
		s := sha256.Sum256(der)
		return hex.EncodeToString(s[:])
	}
	db, first, second, third := certificate(t, ca2011), certificate(t, "site"), certificate(t, "site 2"), certificate(t, "site 3")
	attributes := []byte{6, 0, 0, 0}
	file := func(parts ...[]byte) *fstest.MapFile { return &fstest.MapFile{Data: slices.Concat(parts...)} }
	got := Read(sysfs.Of(fstest.MapFS{
		variables + "/SecureBoot" + global: file(attributes, []byte{1}), variables + "/SetupMode" + global: file(attributes, []byte{0}),
		variables + "/db" + database: file(attributes, list([]byte(efisig.X509), db)), variables + "/MokListRT" + shim: file(attributes, list([]byte(efisig.X509), first)), variables + "/MokListRT1" + shim: file(attributes, list([]byte(efisig.X509), second)),
		variables + "/MokListRT" + global: file(attributes, list([]byte(efisig.X509), certificate(t, "of nobody"))),
		mokTable + "/MokListRT":           file(list([]byte(efisig.X509), first), list([]byte(efisig.X509), third)), mokTable + "/MokListXRT": file(list([]byte(efisig.X509), certificate(t, "revoked"))),
	}))
	if want := []string{sum(db), sum(first), sum(second), sum(third)}; got == nil || !slices.Equal(got.Keys, want) || !slices.Equal(got.Authorities, []string{ca2011}) {
		t.Errorf("got %+v, want keys %v", got, want)
	}
}

// names are the common names of certificates in lists.
func names(lists []byte) (all []string, damaged bool) {
	certs, damaged := certificates(lists)
	for _, c := range certs {
		all = append(all, c.Subject.CommonName)
	}
	return all, damaged
}

// FuzzAuthorities: no list of the firmware ends the agent.
func FuzzAuthorities(f *testing.F) {
	f.Add(list([]byte(efisig.X509), []byte("x")))
	f.Add([]byte{})
	f.Fuzz(func(t *testing.T, b []byte) {
		if all, damaged := names(b); len(b) == 0 && (len(all) > 0 || damaged) {
			t.Error(all, damaged)
		}
	})
}

// TestPeerSignatureLists reads lists that efitools made, and those of OVMF with Microsoft's
// keys, in which db stands as it is.
func TestPeerSignatureLists(t *testing.T) {
	t.Parallel()
	peertest.Need(t, "cert-to-efi-sig-list", "openssl", "/usr/share/OVMF/OVMF_CODE_4M.secboot.fd")
	dir := t.TempDir()
	for _, name := range []string{ca2011, ca2023} {
		der, pem, esl := filepath.Join(dir, "c.der"), filepath.Join(dir, "c.pem"), filepath.Join(dir, "c.esl")
		if err := os.WriteFile(der, certificate(t, name), 0o600); err != nil {
			t.Fatal(err)
		}
		for _, argv := range [][]string{{"openssl", "x509", "-inform", "der", "-in", der, "-out", pem}, {"cert-to-efi-sig-list", pem, esl}} {
			if out, err := exec.CommandContext(t.Context(), argv[0], argv[1:]...).CombinedOutput(); err != nil {
				t.Fatalf("%v: %v\n%s", argv, err, out)
			}
		}
		b, err := os.ReadFile(esl)
		if err != nil {
			t.Fatal(err)
		}
		if got, damaged := names(b); !slices.Equal(got, []string{name}) || damaged {
			t.Errorf("efitools' list of %s: %q, %v", name, got, damaged)
		}
	}
	store, err := os.ReadFile("/usr/share/OVMF/OVMF_VARS_4M.ms.fd")
	if err != nil {
		t.Fatal(err)
	}
	var all []string
	for at := bytes.Index(store, []byte(efisig.X509)); at >= 0; {
		size := binary.LittleEndian.Uint32(store[at+16:])
		some, damaged := names(store[at : at+int(size)])
		if damaged {
			t.Errorf("the list at %#x is damaged", at)
		}
		all = append(all, some...)
		next := bytes.Index(store[at+int(size):], []byte(efisig.X509))
		if next < 0 {
			break
		}
		at += int(size) + next
	}
	for _, want := range []string{ca2011, "Microsoft Windows Production PCA 2011"} {
		if !slices.Contains(all, want) {
			t.Errorf("OVMF's lists have %q, and not %s", all, want)
		}
	}
}

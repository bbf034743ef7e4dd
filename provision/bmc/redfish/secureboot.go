// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"errors"
	"net/http"
	"strings"
)

// SecureBoot is what a BMC shows of the Secure Boot of its node (DMTF DSP2046, SecureBoot,
// SecureBootDatabase and Certificate). Many leave parts out, some until the node's first POST.
type SecureBoot struct {
	Current string // SecureBootCurrentBoot, of the last boot: "Enabled" or "Disabled"; "": not shown
	Wanted  string // SecureBootEnable, from the next boot on: "true" or "false"; "": not shown
	Mode    string // SecureBootMode: "UserMode", "SetupMode" and so on; "": not shown
	// Authorities are the common names of all certificates in db; none: they are not shown whole.
	Authorities []string
	// Keys name the same certificates, in their order; a field that the service leaves out is "".
	Keys []Key
	// Takes: the service shows where certificates are added to db.
	Takes bool
}

// Key names a certificate in db.
type Key struct {
	Name        string // its common name
	Serial      string // its serial number, as "5D:7A:..."
	Fingerprint string // SHA-256, in small hexadecimal letters
}

// Is reports whether two keys name the same certificate, by its fingerprint or, where a service
// does not show it, by name and serial number.
func (k Key) Is(o Key) bool {
	if k.Fingerprint != "" && o.Fingerprint != "" {
		return k.Fingerprint == o.Fingerprint
	}
	return k.Serial != "" && k.Name == o.Name && strings.EqualFold(k.Serial, o.Serial)
}

// maxCertificates bounds how many certificates of db are read; servers have about five.
const maxCertificates = 32

// SecureBoot reads it. A service that has no such resource, or no licence for it, is an
// error of kind Unsupported; one that shows no databases is not.
func (c *Client) SecureBoot(ctx context.Context) (s SecureBoot, err error) {
	p, err := c.where(ctx)
	if err != nil {
		return s, err
	}
	var sys struct{ SecureBoot link }
	if _, err := c.get(ctx, p.system, &sys); err != nil {
		return s, err
	}
	if sys.SecureBoot == "" {
		return s, unsupported("Secure Boot")
	}
	var doc struct {
		SecureBootEnable, SecureBootCurrentBoot, SecureBootMode text
		SecureBootDatabases                                     link
	}
	if _, err := c.get(ctx, string(sys.SecureBoot), &doc); err != nil {
		if ignoreUnsupported(err) == nil {
			err = unsupported("Secure Boot")
		}
		return s, err
	}
	s = SecureBoot{Current: string(doc.SecureBootCurrentBoot), Wanted: string(doc.SecureBootEnable), Mode: string(doc.SecureBootMode)}
	if doc.SecureBootDatabases == "" {
		return s, nil
	}
	certificates, err := c.database(ctx, string(doc.SecureBootDatabases))
	if err != nil || certificates == "" {
		return s, ignoreUnsupported(err)
	}
	s.Takes = true
	s.Keys, err = c.keys(ctx, certificates)
	for _, k := range s.Keys {
		s.Authorities = append(s.Authorities, k.Name)
	}
	return s, ignoreUnsupported(err)
}

// database is where the certificates of the database db are; "": it is not shown.
func (c *Client) database(ctx context.Context, databases string) (string, error) {
	all, err := c.members(ctx, databases, maxCertificates)
	if err != nil {
		return "", err
	}
	for _, l := range all {
		var db struct {
			ID           text `json:"Id"`
			DatabaseID   text `json:"DatabaseId"`
			Certificates link
		}
		if _, err := c.get(ctx, string(l), &db); err != nil {
			return "", err
		}
		if db.DatabaseID == "db" || db.DatabaseID == "" && db.ID == "db" {
			return string(db.Certificates), nil
		}
	}
	return "", nil
}

// keys reads the certificates of a database; none where they are not shown whole.
func (c *Client) keys(ctx context.Context, certificates string) (list []Key, err error) {
	certs, err := c.members(ctx, certificates, maxCertificates)
	if err != nil || len(certs) == maxCertificates { // there may be more
		return nil, err
	}
	for _, l := range certs {
		k, err := c.key(ctx, string(l))
		if err != nil || k.Name == "" { // a part of them would make authorities look missing
			return nil, err
		}
		list = append(list, k)
	}
	return list, nil
}

// key names a certificate: as it stands in it, else as the service names it.
func (c *Client) key(ctx context.Context, path string) (Key, error) {
	var doc struct {
		CertificateString, SerialNumber text
		Subject                         struct{ CommonName text }
	}
	if _, err := c.get(ctx, path, &doc); err != nil {
		return Key{}, err
	}
	k := Key{Name: string(doc.Subject.CommonName), Serial: string(doc.SerialNumber)}
	if block, _ := pem.Decode([]byte(doc.CertificateString)); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			sum := sha256.Sum256(cert.Raw)
			k.Name, k.Fingerprint = cmp.Or(k.Name, cert.Subject.CommonName), hex.EncodeToString(sum[:])
		}
	}
	return k, nil
}

// signatureOwner is the SignatureOwner of certificates that are added to db (UEFI 2.10, 32.4.1):
// who put them there. It is any GUID.
const signatureOwner = "6f2d1f0e-5b0c-4c39-9d0a-3c1c6f0b9a41"

// Enrol adds a certificate, in PEM, to db (POST to the collection of its certificates). It is in
// force after the node's next POST, and some services do not show it before. A service without
// such a collection is an error of kind Unsupported.
func (c *Client) Enrol(ctx context.Context, certificate []byte) error {
	p, err := c.where(ctx)
	if err != nil {
		return err
	}
	var sys struct{ SecureBoot link }
	if _, err := c.get(ctx, p.system, &sys); err != nil {
		return err
	}
	var doc struct{ SecureBootDatabases link }
	if sys.SecureBoot != "" {
		if _, err := c.get(ctx, string(sys.SecureBoot), &doc); err != nil {
			return err
		}
	}
	to := ""
	if doc.SecureBootDatabases != "" {
		if to, err = c.database(ctx, string(doc.SecureBootDatabases)); err != nil {
			return err
		}
	}
	if to == "" {
		return unsupported("certificates of Secure Boot")
	}
	body := map[string]string{"CertificateString": string(certificate), "CertificateType": "PEM", "UefiSignatureOwner": signatureOwner}
	_, err = c.post(ctx, to, body)
	if f, isFault := errors.AsType[*Fault](err); isFault && f.Status == http.StatusBadRequest {
		delete(body, "UefiSignatureOwner") // iLO 6 documents the other two alone; nothing was done
		_, err = c.post(ctx, to, body)
	}
	return err
}

// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"crypto/x509"
	"encoding/pem"
)

// SecureBoot is what a BMC shows of the Secure Boot of its node (DMTF DSP2046, SecureBoot,
// SecureBootDatabase and Certificate). Many leave parts out, some until the node's first POST.
type SecureBoot struct {
	Current string // SecureBootCurrentBoot, of the last boot: "Enabled" or "Disabled"; "": not shown
	Wanted  string // SecureBootEnable, from the next boot on: "true" or "false"; "": not shown
	Mode    string // SecureBootMode: "UserMode", "SetupMode" and so on; "": not shown
	// Authorities are the common names of all certificates in db; none: they are not shown whole.
	Authorities []string
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
	s.Authorities, err = c.authorities(ctx, string(doc.SecureBootDatabases))
	return s, ignoreUnsupported(err)
}

// authorities reads the certificates of the database db.
func (c *Client) authorities(ctx context.Context, databases string) (names []string, err error) {
	all, err := c.members(ctx, databases, maxCertificates)
	if err != nil {
		return nil, err
	}
	for _, l := range all {
		var db struct {
			ID           text `json:"Id"`
			DatabaseID   text `json:"DatabaseId"`
			Certificates link
		}
		if _, err := c.get(ctx, string(l), &db); err != nil {
			return nil, err
		}
		if db.DatabaseID != "db" && (db.DatabaseID != "" || db.ID != "db") || db.Certificates == "" {
			continue
		}
		certs, err := c.members(ctx, string(db.Certificates), maxCertificates)
		if err != nil || len(certs) == maxCertificates { // there may be more
			return nil, err
		}
		for _, l := range certs {
			name, err := c.authority(ctx, string(l))
			if err != nil || name == "" { // a part of them would make authorities look missing
				return nil, err
			}
			names = append(names, name)
		}
	}
	return names, nil
}

// authority is the name of a certificate: as the service names it, else as it stands in it.
func (c *Client) authority(ctx context.Context, path string) (string, error) {
	var doc struct {
		CertificateString text
		Subject           struct{ CommonName text }
	}
	if _, err := c.get(ctx, path, &doc); err != nil {
		return "", err
	}
	if doc.Subject.CommonName != "" {
		return string(doc.Subject.CommonName), nil
	}
	if block, _ := pem.Decode([]byte(doc.CertificateString)); block != nil {
		if cert, err := x509.ParseCertificate(block.Bytes); err == nil {
			return cert.Subject.CommonName, nil
		}
	}
	return "", nil
}

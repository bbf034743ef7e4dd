// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"crypto/x509"
	"encoding/pem"
	"fmt"
	"strconv"
	"strings"
)

// database is the one of Secure Boot that this BMC shows.
const database = "db"

// databases are the databases of Secure Boot; none where the firmware has no keys.
func (c *call) databases() []string {
	if keys, _ := c.s.c.Keys(); len(keys) == 0 {
		return nil
	}
	return []string{database}
}

func getDatabases(c *call) obj {
	return c.collection("SecureBootDatabase", "UEFI Secure Boot Database Collection", c.databases())
}

func getDatabase(c *call) obj {
	if c.args[0] != database || c.databases() == nil {
		return nil
	}
	return obj{"@odata.type": "#SecureBootDatabase.v1_0_1.SecureBootDatabase", "Id": database, "DatabaseId": database, "Name": "Authorized Signature Database",
		"Certificates": obj{"@odata.id": c.path + "/Certificates"}}
}

// getKeys lists the certificates that are in force: those that were added show after a POST.
func getKeys(c *call) obj {
	if c.args[0] != database {
		return nil
	}
	keys, _ := c.s.c.Keys()
	var ids []string
	for i := range keys {
		ids = append(ids, strconv.Itoa(i+1))
	}
	return c.collection("Certificate", "Certificate Collection", ids)
}

func getKey(c *call) obj {
	keys, _ := c.s.c.Keys()
	i, err := strconv.Atoi(c.args[1])
	if c.args[0] != database || err != nil || i < 1 || i > len(keys) {
		return nil
	}
	cert := parseCertificate(keys[i-1])
	if cert == nil {
		return nil
	}
	var serial []string
	for _, b := range cert.SerialNumber.Bytes() {
		serial = append(serial, fmt.Sprintf("%02X", b))
	}
	return obj{"@odata.type": "#Certificate.v1_5_0.Certificate", "Id": c.args[1], "Name": "Certificate", "CertificateType": "PEM", "CertificateString": keys[i-1],
		"SerialNumber": strings.Join(serial, ":"), "Subject": obj{"CommonName": cert.Subject.CommonName}}
}

func parseCertificate(text string) *x509.Certificate {
	block, _ := pem.Decode([]byte(text))
	if block == nil {
		return nil
	}
	cert, err := x509.ParseCertificate(block.Bytes)
	if err != nil {
		return nil
	}
	return cert
}

// postKey adds a certificate (DSP2046, CertificateCollection).
func postKey(c *call) {
	if c.args[0] != database || c.databases() == nil {
		c.fail("OperationNotAllowed")
		return
	}
	o, ok := c.body()
	if !ok {
		return
	}
	for _, must := range []string{"CertificateString", "CertificateType"} {
		if v, _ := o[must].(string); v == "" {
			c.fail("PropertyMissing", must)
			return
		}
	}
	certificate, _ := o["CertificateString"].(string)
	if kind, _ := o["CertificateType"].(string); kind != "PEM" || parseCertificate(certificate) == nil {
		c.fail("PropertyValueNotInList", kind, "CertificateType")
		return
	}
	c.s.c.Enrol(certificate)
	c.done201()
}

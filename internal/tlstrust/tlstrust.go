// SPDX-License-Identifier: Apache-2.0

// Package tlstrust makes the trust in an HTTPS server of a setting: the authorities of
// the operating system, those of a PEM text, or the pin of the server's key.
package tlstrust

import (
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/hex"
	"encoding/pem"
	"net/http"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// pinPrefix begins a pin: the SHA-256 of the SubjectPublicKeyInfo in hex.
const pinPrefix = "sha256:"

// FindFault says what is wrong with a setting; "" for nothing, also where it is empty.
func FindFault(setting string) string {
	setting = strings.TrimSpace(setting)
	if setting == "" {
		return ""
	}
	if pin, ok := strings.CutPrefix(setting, pinPrefix); ok {
		if b, err := hex.DecodeString(pin); err != nil || len(b) != sha256.Size {
			return "is a pin that has not 64 hex digits"
		}
		return ""
	}
	found := false
	for text := []byte(setting); ; {
		var block *pem.Block
		if block, text = pem.Decode(text); block == nil {
			break
		}
		if block.Type != "CERTIFICATE" {
			return "holds a " + strings.ToLower(block.Type) + ", and not certificates alone"
		}
		if _, err := x509.ParseCertificate(block.Bytes); err != nil {
			return "holds a certificate that cannot be read"
		}
		found = true
	}
	if !found {
		return "is neither certificates in PEM nor a pin"
	}
	return ""
}

// NewClient returns a client for servers that the setting trusts. It follows no redirect,
// which could lead credentials elsewhere, and uses no proxy. limit bounds each request
// with its answer.
func NewClient(setting string, limit time.Duration) (*http.Client, error) {
	if why := FindFault(setting); why != "" {
		return nil, errkind.New(errkind.Invalid, "the trust in the server %s", why)
	}
	c := &tls.Config{MinVersion: tls.VersionTLS12}
	setting = strings.TrimSpace(setting)
	if pin, ok := strings.CutPrefix(setting, pinPrefix); ok {
		want := strings.ToLower(pin)
		c.InsecureSkipVerify = true // the pin is the trust: names and authorities are not looked at
		c.VerifyConnection = func(s tls.ConnectionState) error {
			sum := sha256.Sum256(s.PeerCertificates[0].RawSubjectPublicKeyInfo)
			if got := hex.EncodeToString(sum[:]); got != want {
				return errkind.New(errkind.Auth, "the server's key is not the pinned one: its pin is %s%s", pinPrefix, got)
			}
			return nil
		}
	} else if setting != "" {
		c.RootCAs = x509.NewCertPool()
		c.RootCAs.AppendCertsFromPEM([]byte(setting))
	}
	return &http.Client{Timeout: limit, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
		Transport: &http.Transport{TLSClientConfig: c, TLSHandshakeTimeout: limit, ResponseHeaderTimeout: limit, IdleConnTimeout: time.Minute, MaxResponseHeaderBytes: 64 << 10}}, nil
}

// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"math/big"
	"net"
	"net/netip"
	"time"
)

// tls returns the server's configuration. The key and the certificate, signed by
// itself as a BMC's is out of the box, are made at the first connection to each
// board: hardware that was replaced has others.
func (s *server) tls() *tls.Config {
	return &tls.Config{
		MinVersion: tls.VersionTLS12, NextProtos: []string{"http/1.1"}, SessionTicketsDisabled: true,
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			s.certMu.Lock()
			defer s.certMu.Unlock()
			board := s.c.Identity().UUID
			if s.cert != nil && s.certOf == board {
				return s.cert, nil
			}
			cert, err := s.certify()
			s.cert, s.certOf = cert, board
			return cert, err
		},
	}
}

// certify makes the certificate.
func (s *server) certify() (*tls.Certificate, error) {
	return SelfSigned(s.clock.Now(), s.p.Manager+"-"+s.c.Identity().Serial, s.o.Address, s.manufacturer())
}

// SelfSigned makes a key and a certificate that it signed itself, for an address if
// there is one. P-256 costs some 60 microseconds; the life of 20 years around now is
// what makers give theirs, whatever the BMC's clock says.
func SelfSigned(now time.Time, name string, at netip.Addr, organization ...string) (*tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{
		SerialNumber: big.NewInt(now.UnixNano()),
		Subject:      pkix.Name{Organization: organization, CommonName: name},
		NotBefore:    now.Add(-10 * 365 * 24 * time.Hour), NotAfter: now.Add(10 * 365 * 24 * time.Hour),
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth},
	}
	if at.IsValid() {
		t.IPAddresses = []net.IP{at.AsSlice()}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, &key.PublicKey, key)
	if err != nil {
		return nil, err
	}
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, nil
}

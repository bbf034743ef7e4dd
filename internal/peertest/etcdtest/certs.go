// SPDX-License-Identifier: Apache-2.0

package etcdtest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"math/big"
	"net/netip"
	"os"
	"time"
)

// authority signs certificates for an hour.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// writeCertificates makes the certificate of all members, and that of a client.
func (c *Cluster) writeCertificates(addrs []netip.Addr) {
	c.t.Helper()
	c.Cert, c.Key = c.path("client.crt"), c.path("client.key")
	c.issue(c.authority, "member", addrs, c.path("member.crt"), c.path("member.key"))
	c.issue(c.authority, "controller", nil, c.Cert, c.Key)
}

// Other returns the files of a client whose authority the members do not know.
func (c *Cluster) Other() (ca, cert, key string) {
	c.t.Helper()
	ca, cert, key = c.path("other-ca.crt"), c.path("other.crt"), c.path("other.key")
	c.issue(c.newAuthority("somebody else", ca), "controller", nil, cert, key)
	return ca, cert, key
}

func (c *Cluster) newAuthority(name, file string) authority {
	c.t.Helper()
	a := authority{key: c.newKey(), cert: template(name)}
	a.cert.IsCA, a.cert.BasicConstraintsValid, a.cert.KeyUsage = true, true, x509.KeyUsageCertSign
	c.sign(a, a.cert, a.key, file)
	return a
}

func (c *Cluster) issue(by authority, name string, addrs []netip.Addr, cert, key string) {
	c.t.Helper()
	k, is := c.newKey(), template(name)
	is.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	if len(addrs) > 0 {
		is.ExtKeyUsage = append(is.ExtKeyUsage, x509.ExtKeyUsageServerAuth)
	}
	for _, a := range addrs {
		is.IPAddresses = append(is.IPAddresses, a.AsSlice())
	}
	if len(addrs) > 0 { // etcd compares where a member's connection comes from: a link
		is.IPAddresses = append(is.IPAddresses, netip.MustParseAddr("127.0.0.1").AsSlice())
	}
	c.sign(by, is, k, cert)
	raw, err := x509.MarshalPKCS8PrivateKey(k)
	if err != nil {
		c.t.Fatal(err)
	}
	c.writePEM(key, "PRIVATE KEY", raw)
}

func (c *Cluster) sign(by authority, is *x509.Certificate, key *ecdsa.PrivateKey, file string) {
	c.t.Helper()
	raw, err := x509.CreateCertificate(rand.Reader, is, by.cert, key.Public(), by.key)
	if err != nil {
		c.t.Fatal(err)
	}
	c.writePEM(file, "CERTIFICATE", raw)
}

func (c *Cluster) newKey() *ecdsa.PrivateKey {
	c.t.Helper()
	k, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	return k
}

func (c *Cluster) writePEM(file, kind string, raw []byte) {
	c.t.Helper()
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600); err != nil {
		c.t.Fatal(err)
	}
}

func template(name string) *x509.Certificate {
	serial, _ := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 100))
	return &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Minute), NotAfter: time.Now().Add(time.Hour), KeyUsage: x509.KeyUsageDigitalSignature}
}

// poolOf reads authorities.
func poolOf(file string) (*x509.CertPool, error) {
	b, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(b) {
		return nil, errors.New(file + " has no certificate")
	}
	return pool, nil
}

// SPDX-License-Identifier: Apache-2.0

package guard

import (
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"io/fs"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
)

// The files of a state folder that belong to this package. Only their owner may read them.
const (
	tokenFile       = "web.token"
	certificateFile = "web.pem"
)

// certificateTime is how long a certificate that is made here is good.
const certificateTime = 2 * 365 * 24 * time.Hour

// ReadToken reads the token of a state folder, and makes it where there is none and
// create is set.
func ReadToken(folder string, create bool) (string, error) {
	path := filepath.Join(folder, tokenFile)
	b, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) && create {
		b = []byte(randomText() + "\n")
		err = writeNew(path, b)
	}
	if err != nil {
		return "", fmt.Errorf("token of the web page: %w", err)
	}
	token := strings.TrimSpace(string(b))
	if len(token) < 20 {
		return "", errkind.New(errkind.Invalid, "%s has %d signs: a token has 20 or more", path, len(token)).Do("Remove the file: the next `ironrail serve` makes another.")
	}
	return token, nil
}

// writeNew writes a file that is not there yet, whole or not at all.
func writeNew(path string, content []byte) error {
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".web-*") // 0600
	if err != nil {
		return err
	}
	_, err = f.Write(content)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return err
}

// LoadCertificate reads the certificate of two files, or that of the state folder, which is
// made, for these hosts, where there is none or it is past. Print is its SHA-256.
func LoadCertificate(certificate, key, folder string, hosts []string, now time.Time) (c tls.Certificate, print string, err error) {
	if certificate != "" {
		c, err = tls.LoadX509KeyPair(certificate, key)
	} else {
		c, err = ownCertificate(filepath.Join(folder, certificateFile), hosts, now)
	}
	if err != nil {
		return c, "", fmt.Errorf("certificate of the web page: %w", err)
	}
	sum := sha256.Sum256(c.Certificate[0])
	return c, strings.ToUpper(strings.TrimSuffix(strings.Join(splitPairs(fmt.Sprintf("%x", sum)), ":"), ":")), nil
}

func splitPairs(text string) (out []string) {
	for i := 0; i+2 <= len(text); i += 2 {
		out = append(out, text[i:i+2])
	}
	return out
}

// ownCertificate reads a certificate that was made here while it is good for these hosts.
func ownCertificate(path string, hosts []string, now time.Time) (tls.Certificate, error) {
	b, err := os.ReadFile(path)
	if err == nil {
		if c, err := tls.X509KeyPair(b, b); err == nil && isGoodFor(c, hosts, now) {
			return c, nil
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return tls.Certificate{}, err
	}
	if b, err = makeCertificate(hosts, now); err != nil {
		return tls.Certificate{}, err
	}
	if err := writeNew(path, b); err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(b, b)
}

func isGoodFor(c tls.Certificate, hosts []string, now time.Time) bool {
	if c.Leaf == nil || now.After(c.Leaf.NotAfter) {
		return false
	}
	for _, h := range hosts {
		if c.Leaf.VerifyHostname(nameOf(h)) != nil {
			return false
		}
	}
	return true
}

// nameOf is a host without its port.
func nameOf(host string) string {
	if name, _, err := net.SplitHostPort(host); err == nil {
		return name
	}
	return strings.Trim(host, "[]")
}

// makeCertificate makes a certificate that signs itself, with its key, as PEM.
func makeCertificate(hosts []string, now time.Time) ([]byte, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, err
	}
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	t := &x509.Certificate{SerialNumber: serial, Subject: pkix.Name{CommonName: "ironrail"}, NotBefore: now.Add(-time.Hour), NotAfter: now.Add(certificateTime),
		KeyUsage: x509.KeyUsageDigitalSignature, ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, BasicConstraintsValid: true}
	named := map[string]bool{} // with several ports
	for _, h := range hosts {
		name := nameOf(h)
		if named[name] {
			continue
		}
		named[name] = true
		if ip := net.ParseIP(name); ip != nil {
			t.IPAddresses = append(t.IPAddresses, ip)
		} else {
			t.DNSNames = append(t.DNSNames, name)
		}
	}
	der, err := x509.CreateCertificate(rand.Reader, t, t, key.Public(), key)
	if err != nil {
		return nil, err
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, err
	}
	var b bytes.Buffer
	for _, p := range []pem.Block{{Type: "CERTIFICATE", Bytes: der}, {Type: "PRIVATE KEY", Bytes: private}} {
		if err := pem.Encode(&b, &p); err != nil {
			return nil, err
		}
	}
	return b.Bytes(), nil
}

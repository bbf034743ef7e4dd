// SPDX-License-Identifier: Apache-2.0

package bmc_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/errkind"
	"github.com/ironrail/ironrail/internal/peertest"
	"github.com/ironrail/ironrail/internal/secret"
	"github.com/ironrail/ironrail/provision/bmc"
)

// TestPeerSushyTools works on the Redfish emulator of OpenStack's sushy-tools with its fake
// driver: it wants Basic authentication for everything but the service root, has no
// sessions, and keeps a boot device for every boot, though it is asked for one. It runs
// where IRONRAIL_SUSHY_TOOLS names a checkout (Debian: python3-flask, python3-requests,
// python3-tenacity, python3-bcrypt, python3-webob, python3-pbr).
func TestPeerSushyTools(t *testing.T) {
	t.Parallel()
	dir := peertest.Checkout(t, "IRONRAIL_SUSHY_TOOLS", "a checkout of openstack/sushy-tools")
	target := startSushyTools(t, dir)
	s, err := bmc.Open(t.Context(), target, bmc.Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close(context.WithoutCancel(t.Context()))
	out, err := s.SetBoot(t.Context(), bmc.Boot{Device: bmc.PXE, Once: true, UEFI: true})
	if err != nil || out.Verdict != bmc.Verified || !out.Persistent {
		t.Errorf("PXE once: %+v, %v", out, err)
	}
	if out, err := s.SetPower(t.Context(), bmc.On); err != nil || out.Verdict != bmc.Verified {
		t.Errorf("power on: %+v, %v", out, err)
	}
	if out, err := s.SetBoot(t.Context(), bmc.Boot{Device: bmc.Disk, UEFI: true}); err != nil || out.Verdict != bmc.Verified || out.Persistent {
		t.Errorf("disk: %+v, %v", out, err)
	}
	wrong := target
	wrong.Password = secret.NewValue("wrong")
	if _, err := bmc.Open(t.Context(), wrong, bmc.Options{}); errkind.Of(err) != errkind.Auth {
		t.Errorf("a wrong password: %v", err)
	}
}

// startSushyTools starts the emulator on loopback and waits until it answers.
func startSushyTools(t *testing.T, dir string) bmc.Target {
	t.Helper()
	work := t.TempDir()
	write := func(name, text string) string {
		path := filepath.Join(work, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	hash, err := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "import bcrypt; print(bcrypt.hashpw(b'canary-31f0', bcrypt.gensalt(4)).decode())").Output()
	if err != nil {
		t.Fatalf("bcrypt: %v", err)
	}
	cert, key := selfSigned(t)
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	at := ln.Addr().(*net.TCPAddr).AddrPort()
	ln.Close()
	config := write("emulator.conf", fmt.Sprintf("SUSHY_EMULATOR_AUTH_FILE = %q\nSUSHY_EMULATOR_SSL_CERT = %q\nSUSHY_EMULATOR_SSL_KEY = %q\nSUSHY_EMULATOR_STATE_DIR = %q\n",
		write("htpasswd", "admin:"+strings.TrimSpace(string(hash))+"\n"), write("cert.pem", cert), write("key.pem", key), work))
	cmd := exec.CommandContext(t.Context(), "/usr/bin/python3", "-c", "from sushy_tools.emulator.main import main; main()",
		"--config", config, "--fake", "-i", "127.0.0.1", "-p", fmt.Sprint(at.Port()))
	cmd.Dir = dir
	cmd.Env = append(slices.DeleteFunc(os.Environ(), func(v string) bool { return strings.HasPrefix(v, "SUSHY_") }), "PYTHONPATH="+dir, "PBR_VERSION=2.0")
	log := filepath.Join(work, "log")
	f, err := os.Create(log)
	if err != nil {
		t.Fatal(err)
	}
	cmd.Stdout, cmd.Stderr = f, f
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
		f.Close()
		if b, err := os.ReadFile(log); err == nil && t.Failed() {
			t.Logf("sushy-tools:\n%s", b)
		}
	})
	for range 600 {
		if c, err := net.DialTimeout("tcp", at.String(), time.Second); err == nil {
			c.Close()
			return bmc.Target{Node: "n1", Protocol: bmc.Redfish, Addr: netip.MustParseAddrPort(at.String()), Username: "admin", Password: secret.NewValue("canary-31f0")}
		}
		time.Sleep(100 * time.Millisecond)
	}
	t.Fatal("sushy-tools does not listen")
	return bmc.Target{}
}

// selfSigned makes a certificate for 127.0.0.1, in PEM.
func selfSigned(t *testing.T) (cert, key string) {
	t.Helper()
	priv, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "bmc"}, NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}
	der, err := x509.CreateCertificate(rand.Reader, template, template, &priv.PublicKey, priv)
	if err != nil {
		t.Fatal(err)
	}
	pkcs8, err := x509.MarshalPKCS8PrivateKey(priv)
	if err != nil {
		t.Fatal(err)
	}
	return string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})), string(pem.EncodeToMemory(&pem.Block{Type: "PRIVATE KEY", Bytes: pkcs8}))
}

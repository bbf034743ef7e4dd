// SPDX-License-Identifier: Apache-2.0

package ipmisim

import (
	"bytes"
	"net/netip"
	"os"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/cmd/ironrail-lab/internal/rack"
	"github.com/ironrail/ironrail/internal/secret"
)

func machine() rack.Machine {
	return rack.Machine{Name: "n1", Hardware: rack.BIOS, Serial: "LAB0001", UUID: "00112233-4455-6677-8899-aabbccddeeff", BMCAddress: netip.MustParseAddr("10.77.1.11")}
}

func TestWrite(t *testing.T) {
	t.Parallel()
	f := FilesIn(t.TempDir())
	b := BMC{Machine: machine(), Password: secret.NewValue("canary-3141"), SOLPort: 9001, Chassis: []string{"/bin/ironrail-lab", "chassis", "/s/lab.sock", "n1"}}
	if err := b.Write(f); err != nil {
		t.Fatal(err)
	}
	lan, err := os.ReadFile(f.LAN)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"addr 10.77.1.11 623\n", "guid 33221100554477668899aabbccddeeff\n", `user 2 true "admin" "canary-3141" admin`,
		`chassis_control "/bin/ironrail-lab chassis /s/lab.sock n1"`, `sol "tcp:127.0.0.1:9001" 115200`,
	} {
		if !bytes.Contains(lan, []byte(want)) {
			t.Errorf("lan.conf has no %q:\n%s", want, lan)
		}
	}
	if info, err := os.Stat(f.LAN); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("lan.conf: mode %v, error %v", info.Mode(), err)
	}
	for _, name := range []string{f.Emulator, f.FRU} {
		if b, err := os.ReadFile(name); err != nil || bytes.Contains(b, []byte("canary")) {
			t.Errorf("%s: error %v, or the password is in it", name, err)
		}
	}
}

func TestRefusals(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name, password string
		chassis        []string
		err            string
	}{
		{"no password", "", []string{"x"}, "0 characters"},
		{"long password", strings.Repeat("a", 20), []string{"x"}, "20 characters"},
		{"blank in the password", "a b", []string{"x"}, "character"},
		{"quote in the password", `a"b`, []string{"x"}, "character"},
		{"a path for the shell", "pass", []string{"/tmp/$(reboot)"}, "characters"},
		{"a path with a blank", "pass", []string{"/my state"}, "characters"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			err := BMC{Machine: machine(), Password: secret.NewValue(tt.password), Chassis: tt.chassis}.Write(FilesIn(t.TempDir()))
			if err == nil || !strings.Contains(err.Error(), tt.err) {
				t.Errorf("error %v, want one with %q", err, tt.err)
			}
			if err != nil && len(tt.password) > 2 && strings.Contains(err.Error(), tt.password) && tt.password != "pass" {
				t.Error("the error shows the password")
			}
		})
	}
}

func TestFRUChecksums(t *testing.T) {
	t.Parallel()
	b, err := PackFRU(machine())
	if err != nil {
		t.Fatal(err)
	}
	boardAt, productAt := int(b[3])*8, int(b[4])*8
	for name, part := range map[string][]byte{
		"header":  b[:8],
		"board":   b[boardAt : boardAt+int(b[boardAt+1])*8],
		"product": b[productAt : productAt+int(b[productAt+1])*8],
	} {
		if checksumOf(part) != 0 {
			t.Errorf("%s area does not sum to zero", name)
		}
		if name != "header" && !bytes.Contains(part, []byte("\xc7LAB0001")) {
			t.Errorf("%s area has no serial", name)
		}
	}
	m := machine()
	m.Serial = "X"
	if _, err := PackFRU(m); err == nil {
		t.Error("a serial of one character was encoded as an end mark")
	}
}

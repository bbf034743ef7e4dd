// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/peertest"
)

// TestPeerSushy runs OpenStack's sushy, a client of another maker in another
// language (Debian: python3-sushy).
func TestPeerSushy(t *testing.T) {
	t.Parallel()
	python := peertest.Python(t, "sushy")
	script, err := filepath.Abs(filepath.Join("testdata", "judge.py"))
	if err != nil {
		t.Fatal(err)
	}
	each(t, func(t *testing.T, p Personality) {
		b := start(t, p, Options{})
		cmd := exec.CommandContext(t.Context(), python, script, b.url, user, password, b.system(p), root+"/Managers/"+p.Manager,
			root+"/UpdateService/FirmwareInventory/"+p.BIOSFirmware)
		cmd.Env = slices.DeleteFunc(os.Environ(), func(v string) bool { // it would overrule verify=False
			return strings.HasPrefix(v, "REQUESTS_CA_BUNDLE=") || strings.HasPrefix(v, "CURL_CA_BUNDLE=")
		})
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%v\n%s", err, out)
		}
		if o := b.c.Counters(); o.PowerOns != 1 || o.PowerOffs != 1 {
			t.Errorf("%+v\n%s", o, out)
		}
		_, pending := b.c.BIOS()
		if len(pending) != 1 {
			t.Errorf("pending BIOS settings %v\n%s", pending, out)
		}
	})
}

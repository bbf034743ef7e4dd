// SPDX-License-Identifier: Apache-2.0

package fabricmanager

import (
	"encoding/json"
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

func fixture(t testing.TB) []byte {
	t.Helper()
	b, err := os.ReadFile("testdata/log.txt")
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestParse(t *testing.T) {
	t.Parallel()
	l, p, err := Parse(fixture(t))
	if err != nil {
		t.Fatal(err)
	}
	got, err := json.Marshal(l)
	if err != nil {
		t.Fatal(err)
	}
	want := `{"version":"570.172.08","build":"release","configured":true,"lines":{"info":4,"warning":1,"error":2},"errors":[` +
		`{"line":8,"time":"Mar 03 2026 10:10:02","text":"detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:86:00.0 physical id 3 port 61","sxid":12028,"bus":"0000:86:00.0","port":61},` +
		`{"line":9,"time":"Mar 03 2026 10:10:03","text":"detected NVSwitch fatal error 20034 on fid 0 on NVSwitch pci bus id 00000000:87:00.0 physical id 1 port 30","fatal":true,"sxid":20034,"bus":"0000:87:00.0","port":30}]}`
	if string(got) != want {
		t.Errorf("got %s\nwant %s", got, want)
	}
	if len(p) != 2 || p[1].Kind != tool.Failed || p[1].Line != 9 || matchFormat(fixture(t)) < 80 {
		t.Errorf("problems %+v", p)
	}
	if s := l.Summary(); len(s) != 3 || !strings.HasPrefix(s[0], "Fabric Manager 570.172.08: all switches set up; 2 errors") {
		t.Errorf("summary %q", s)
	}
}

// TestStart tells a start that ended well from one that did not, and from a log
// that shows none.
func TestStart(t *testing.T) {
	t.Parallel()
	const begin = "Mar  3 09:58:01 n1 nv-fabricmanager[1584]: "
	for in, want := range map[string]string{
		begin + "Fabric Manager version is: 580.95.05\n" + begin + "Successfully configured all the available GPUs and NVSwitches to route NVLink traffic.\n": "all switches set up; 0 errors",
		begin + "Fabric Manager version is: 580.95.05\n" + begin + "Failed to configure all the available NVSwitches.\n":                                      "did not end with all switches set up; 1 errors",
		begin + "Connected to 1 node.\n": "no start of it in the log; 0 errors",
	} {
		l, _, err := Parse([]byte(in))
		if err != nil || !strings.Contains(l.Summary()[0], want) {
			t.Errorf("%q: %v, %q", in, err, l.Summary())
		}
	}
	if _, _, err := Parse([]byte("[INFO] something\n")); err == nil {
		t.Error("anything is taken for Fabric Manager")
	}
}

// TestSample reads the log of a real machine, where it is.
func TestSample(t *testing.T) {
	t.Parallel()
	b, err := os.ReadFile("../../../../../shared/samples/fabricmanager/gpud-fabricmanager.log")
	if err != nil {
		t.Skip("no samples beside this checkout")
	}
	l, _, err := Parse(b)
	if err != nil || len(l.Errors) != 1 || l.Errors[0].SXid != 12028 || l.Lines.Info != 53 {
		t.Errorf("%v, %+v", err, l)
	}
}

// TestJournal: the level of a line that the journal has within one of its own, the
// script that starts it, and what systemd says.
func TestJournal(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"Nov 05 13:55:26 r01-u01 nv-fabricmanager[104]: [May 16 2025 15:10:21] [INFO] [tid 3004] GPU probe request received\nNov 05 13:55:26 r01-u01 nv-fabricmanager[104]: [May 16 2025 15:10:22] [ERROR] [tid 3004] no answer\n": "[{failed Fabric Manager says: no answer 2}]",
		"Sep 18 03:19:01 r01-u01 nvidia-fabricmanager-start.sh[4753]: Detected Pre-NVL5 system\n" +
			"Sep 18 03:19:01 r01-u01 nvidia-fabricmanager-start.sh[4753]: \"/usr/bin/nv-fabricmanager -c x.cfg\" failed! Exit code: 1\n": "[{failed Fabric Manager says: \"/usr/bin/nv-fabricmanager -c x.cfg\" failed! Exit code: 1 2}]",
		"     Active: failed (Result: exit-code) since Mon 2026-01-15 10:30:00 UTC; 5min ago\n\n" +
			"Nov 05 13:55:26 r01-u01 systemd[1]: Starting NVIDIA fabric manager service...\nnv-fabricmanager[1]: fabric manager NVIDIA GPU driver interface version 550.1 doesn't match with driver version 550.2.\n" +
			"Nov 05 13:55:26 r01-u01 systemd[1]: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE\n": "[{failed Fabric Manager says: Active: failed (Result: exit-code) since Mon 2026-01-15 10:30:00 UTC; 5min ago 1} " +
			"{failed Fabric Manager says: fabric manager NVIDIA GPU driver interface version 550.1 doesn't match with driver version 550.2. 4} " +
			"{failed Fabric Manager says: nvidia-fabricmanager.service: Control process exited, code=exited, status=1/FAILURE 5}]",
		"     Active: active (running) since Tue 2026-03-25 02:10:15 UTC; 2h 37min ago\nMar 25 02:10:15 r01-u01 nv-fabricmanager[2116]: Connected to 1 node.\n": "[]",
	} {
		_, p, err := Parse([]byte(in))
		if err != nil || fmt.Sprint(p) != want || matchFormat([]byte(in)) == 0 {
			t.Errorf("%v: got\n%v\nwant\n%s", err, p, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(fixture(f))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := matchFormat(b); n < 0 || n > 100 {
			t.Errorf("%d sure", n)
		}
		l, _, err := Parse(b)
		if err == nil && len(l.Summary()) == 0 {
			t.Error("no summary")
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package dmesg

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

func fixture(t testing.TB) string {
	t.Helper()
	b, err := os.ReadFile("testdata/kernel.txt")
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestEvents(t *testing.T) {
	t.Parallel()
	l, problems, err := Parse([]byte(fixture(t)))
	if err != nil {
		t.Fatal(err)
	}
	want := []string{
		"2 pcie-link 0000:8b:00.0 0 degraded", "3 sxid 0000:05:00.0 12028 degraded", "5 sxid 0000:c3:00.0 20034 fatal",
		"8 xid 0000:9b:00.0 79 fatal", "9 xid 0000:3b:00.0 31 application", "10 xid 0000:3b:00.0 63 degraded", "11 xid 0008:06:00.0 149 fatal",
		"12 nvrm 0000:4c:00.0 0 fatal", "13 amdgpu 0000:c5:00.0 0 fatal", "14 amdgpu 0000:c5:00.0 0 notice", "15 amdgpu 0000:c5:00.0 0 degraded",
		"16 aer 0000:01:00.0 0 notice", "17 aer 0000:01:00.0 0 notice", "18 aer 0000:01:00.0 0 fatal", "19 edac  0 fatal", "20 nvme  0 degraded",
	}
	var got []string
	for _, e := range l.Events {
		got = append(got, fmt.Sprintf("%d %s %s %d %s", e.Line, e.Kind, e.Bus, e.Code, e.Level))
		if e.Meaning == "" || e.Text == "" || e.Time == "" || e.Action == "" && e.Level != Notice {
			t.Errorf("%+v says too little", e)
		}
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
	if l.Serial("0000:9b:00.0") != "1650000000004" || l.Serial("0000:3b:00.0") != "" || l.GPUs[0].UUID != "GPU-00000004-1111-2222-3333-444455556666" {
		t.Errorf("GPUs %+v", l.GPUs)
	}
	if n := *l.Events[1].Link; n != 32 {
		t.Errorf("link %d", n)
	}
	if len(problems) != 7 || problems[0].Kind != tool.Failed || problems[0].Line != 5 {
		t.Errorf("problems %+v", problems)
	}
}

// TestStamps reads one message with the beginnings that programs give it.
func TestStamps(t *testing.T) {
	t.Parallel()
	const message = "NVRM: Xid (PCI:0000:9b:00): 119, pid=1, name=a, Timeout after 6s of waiting for RPC response"
	for begin, want := range map[string]string{
		"[12345.678901] ":                                     "12345.678901",
		"<3>[    1.678901] ":                                  "1.678901",
		"[Sun Feb 23 16:24:18 2025] ":                         "Sun Feb 23 16:24:18 2025",
		"Feb  3 16:24:18 n1 kernel: ":                         "Feb  3 16:24:18",
		"févr. 23 16:24:18 n1 kernel: ":                       "févr. 23 16:24:18",
		"2月 23 16:24:18 n1 kernel: ":                          "2月 23 16:24:18",
		"Feb 23 16:24:18 n1 kernel: [ 12.5] ":                 "Feb 23 16:24:18",
		"2025-02-23T16:24:18+0000 n1 kernel: ":                "2025-02-23T16:24:18+0000",
		"2025-02-23T16:24:18,123456+00:00 ":                   "2025-02-23T16:24:18,123456+00:00",
		"kern  :warn  : [    1.5] ":                           "1.5",
		"kern  :warn  : 2025-01-21T04:41:44,285060+00:00 ":    "2025-01-21T04:41:44,285060+00:00",
		"3,1200,88123456,-;":                                  "88123456",
		"3,1200,88123456,-,caller=T1;":                        "88123456",
		"":                                                    "",
		"kernel says on its console without any time at all ": "",
	} {
		l, _, err := Parse([]byte(begin + message + "\n"))
		if err != nil || len(l.Events) != 1 || l.Events[0].Time != want || l.Events[0].Code != 119 || l.Events[0].Bus != "0000:9b:00.0" {
			t.Errorf("%q: %v, %+v", begin, err, l.Events)
		}
	}
	if _, _, err := Parse([]byte("nothing of a kernel\n")); err == nil {
		t.Error("anything is taken for a kernel log")
	}
}

func TestOtherXids(t *testing.T) {
	t.Parallel()
	l, _, err := Parse([]byte("[1.5] NVRM: Xid (PCI:0018:01:00): 145, RLW_REMAP        Nonfatal XC1 i0 Link 08 (0x1)\n"))
	if err != nil || l.Events[0].Level != Degraded || l.Events[0].Code != 145 {
		t.Errorf("%v, %+v", err, l.Events)
	}
	l, _, err = Parse([]byte("[1.5] NVRM: Xid (PCI:0000:9b:00): 999\n"))
	if err != nil || l.Events[0].Level != Degraded || l.Events[0].Action == "" {
		t.Errorf("%v, %+v", err, l.Events)
	}
}

func TestIs(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]int{fixture(t): 88, "[ 1.5] a\n[ 1.6] b\n[ 1.7] c\n": 40, "hello\n": 0} {
		if got := matchFormat([]byte(in)); got != want {
			t.Errorf("%.30q: %d sure, want %d", in, got, want)
		}
	}
}

// TestSamples reads outputs of real machines, where they are.
func TestSamples(t *testing.T) {
	t.Parallel()
	files, _ := filepath.Glob("../../../shared/samples/dmesg/*")
	if len(files) == 0 {
		t.Skip("no samples beside this checkout")
	}
	for _, file := range files {
		b, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		l, p, err := Parse(b)
		if err != nil || len(p) == 0 || len(l.GPUs) == 0 || l.GPUs[0].Serial == "" {
			t.Errorf("%s: %v, %v, %+v", file, err, p, l.GPUs)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(fixture(f)))
	f.Fuzz(func(t *testing.T, b []byte) {
		if n := matchFormat(b); n < 0 || n > 100 {
			t.Errorf("%d sure", n)
		}
		l, _, err := Parse(b)
		if err != nil {
			return
		}
		if _, err := json.Marshal(l); err != nil {
			t.Error(err)
		}
		if len(l.Summary()) == 0 {
			t.Error("no summary")
		}
	})
}

// TestUnnamed: events of older drivers, and of the platform's firmware, name no
// part.
func TestUnnamed(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]string{
		"NVRM: RmInitAdapter failed! (0x24:0x40:1190)":                                                        "nvrm fatal",
		"[drm:amdgpu_job_timedout [amdgpu]] *ERROR* ring sdma0 timeout, signaled seq=12, emitted seq=14":      "amdgpu degraded",
		"{1}[Hardware Error]: event severity: fatal":                                                          "mce fatal",
		"{3}[Hardware Error]: event severity: recoverable":                                                    "mce degraded",
		"{4}[Hardware Error]: event severity: corrected":                                                      "mce notice",
		"{5}[Hardware Error]: event severity: info":                                                           "",
		"{1}[Hardware Error]: Hardware error from APEI Generic Hardware Error Source: 0":                      "",
		"NVRM: loading NVIDIA UNIX x86_64 Kernel Module  470.256.02  Thu May  2 14:37:44 UTC 2024":            "",
		"NVRM: rm_init_adapter failed for device bearing minor number 0 (RmInitAdapter failed! was above it)": "",
	} {
		l, _, err := Parse([]byte("[   10.000000] " + line + "\n"))
		got := ""
		if len(l.Events) == 1 && l.Events[0].Bus == "" {
			got = l.Events[0].Kind + " " + string(l.Events[0].Level)
		}
		if err != nil || got != want || len(l.Events) > 1 {
			t.Errorf("%q: %v, got %q of %+v, want %q", line, err, got, l.Events, want)
		}
	}
}

// TestAMD: what amdgpu says beside its counts of errors.
func TestAMD(t *testing.T) {
	t.Parallel()
	for line, want := range map[string]Level{
		"amdgpu: [gfxhub0] no-retry page fault (src_id:0 ring:24 vmid:3 pasid:32771, for process a pid 7 thread a pid 7)": Application,
		"[mmhub0] retry page fault (src_id:0 ring:0 vmid:8 pasid:32770)":                                                  Application,
		"amdgpu: GPU reset(2) failed":                                                    Fatal,
		"amdgpu: GPU reset end with ret = -19":                                           Fatal,
		"amdgpu: MES might be in unrecoverable state, issue a GPU reset":                 Degraded,
		"amdgpu: SMU: I'm not done with your previous command: SMN_C2PMSG_66:0x0000001E": Degraded,
		"amdgpu: GPU reset(2) succeeded!":                                                "",
		"amdgpu: RAS: optional ras ta ucode is not available":                            "",
	} {
		l, _, err := Parse([]byte("[   10.000000] amdgpu 0000:c5:00.0: " + line + "\n"))
		var got Level
		if len(l.Events) == 1 && l.Events[0].Bus == "0000:c5:00.0" {
			got = l.Events[0].Level
		}
		if err != nil || got != want || len(l.Events) > 1 {
			t.Errorf("%q: %v, got %q of %+v, want %q", line, err, got, l.Events, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"encoding/json"
	"fmt"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/tool"
)

// The outputs that stand around every sample in a file.
const (
	before = "testdata/show_gids.txt"
	after  = "testdata/nvidia-smi.txt"
)

// TestLongSeveralOutputs puts every sample between two others, as a script that ran
// three programs does: each is read as it is read alone.
func TestLongSeveralOutputs(t *testing.T) {
	t.Parallel()
	all := samples(t)
	first, last := encoded(t, before, all[before]), encoded(t, after, all[after])
	for i, name := range slices.Sorted(maps.Keys(all)) {
		if testing.Short() && i%3 > 0 {
			continue
		}
		data := all[name]
		t.Run(filepath.Base(name), func(t *testing.T) {
			t.Parallel()
			file := "+ one\n" + string(all[before]) + "+ two\n" + string(data) + "\n+ three\n" + string(all[after])
			r, err := Read("f", []byte(file))
			if err != nil {
				t.Fatal(err)
			}
			got := []string{content(t, r.Content)}
			for _, o := range r.Others {
				got = append(got, content(t, o.Content))
			}
			for _, want := range []string{first, encoded(t, name, data), last} {
				if !slices.Contains(got, want) {
					t.Errorf("%s\nis not among what was read:\n%s", want, strings.Join(got, "\n"))
				}
			}
			if len(got) != 3 {
				t.Errorf("%d outputs were read, want 3", len(got))
			}
		})
	}
}

func content(t *testing.T, v any) string {
	t.Helper()
	out, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return placed.ReplaceAllString(string(out), "")
}

// TestOthersAreTold: no output is lost without a word, and lines are those of the
// file.
func TestOthersAreTold(t *testing.T) {
	t.Parallel()
	const ports = "CA 'mlx5_0'\n\tCA type: MT4129\n\tNumber of ports: 1\n\tFirmware version: 28.43.2026\n\tPort 1:\n\t\tState: Down\n\t\tPhysical state: Polling\n\t\tRate: 10\n\t\tBase lid: 65535\n\t\tLink layer: InfiniBand\n"
	const gpus = "GPU 0: NVIDIA H100 80GB HBM3 (UUID: GPU-00000000-1111-2222-3333-444455556666)\n"
	const bands = "DCBX mode: OS controlled\nPriority trust state: dscp\n"
	for _, c := range []struct {
		name, in, kind string
		others         []string // kind and lines
	}{
		{"one", ports, "ibstat", nil},
		{"below", ports + "\n" + gpus, "ibstat", []string{"nvidia-smi-l 12-12"}},
		{"above", "\n\n$ nvidia-smi -L\n" + gpus + "$ ibstat\n" + ports, "ibstat", []string{"nvidia-smi-l 3-4"}},
		{"a second of a kind", bands + bands, "mlnx_qos", []string{"mlnx_qos 3-4"}},
		{"below much that is not known", strings.Repeat("Handle 0x0001, of some other program\n", 9000) + "GPU 0: NVIDIA B200 (UUID: GPU-1)\n\t Link 0: 50 GB/s\n", "nvidia-smi-nvlink", nil},
		{"a log of its own", gpus + "n1:1:1 [0] NCCL INFO NCCL version 2.27.3+cuda12.9\nn1:1:1 [0] NCCL INFO NET/IB : Using [0]mlx5_0:1/IB\n", "nvidia-smi-l", []string{"nccl-log 2-3"}},
		{"forms of amd-smi", "GPU: 0\n    RETIRED: No bad pages found.\n\nACCESS TABLE:\n             0000:0c:00.0\n0000:0c:00.0 ENABLED\n", "amd-smi", []string{"amd-smi 4-6"}},
		{"commands of amd-smi are one", "GPU: 0\n    RETIRED: No bad pages found.\nGPU: 0\n    BDF: 0000:0c:00.0\n", "amd-smi", nil},
		{"a line that only looks like one", ports + "Slot:\tnone\n", "ibstat", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := Read("f", []byte(c.in))
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, o := range r.Others {
				got = append(got, fmt.Sprintf("%s %d-%d", o.Kind, o.Lines[0], o.Lines[1]))
				if told := fmt.Sprintf("lines %d to %d are another output, of %s", o.Lines[0], o.Lines[1], o.Kind); !slices.ContainsFunc(r.Problems, func(p tool.Problem) bool {
					return p.Kind == tool.Missing && p.Line == o.Lines[0] && strings.Contains(p.Text, told)
				}) {
					t.Errorf("no problem says %q: %v", told, r.Problems)
				}
			}
			if r.Kind != c.kind || !slices.Equal(got, c.others) {
				t.Errorf("got %s with %q, want %s with %q", r.Kind, got, c.kind, c.others)
			}
		})
	}
}

// TestManyOthers: of very many outputs in one file, what is not read is told.
func TestManyOthers(t *testing.T) {
	t.Parallel()
	r, err := Read("f", []byte(strings.Repeat("DCBX mode: OS controlled\nPriority trust state: dscp\n", mostParts+5)))
	if err != nil || len(r.Others) != mostParts {
		t.Fatalf("%v, %d others", err, len(r.Others))
	}
	if last := r.Problems[len(r.Problems)-1]; last.Line != 2*mostParts+3 || !strings.HasPrefix(last.Text, "4 more outputs") {
		t.Errorf("got %+v", last)
	}
}

// TestOneSectionOfShowtopo: the matrix of rocm-smi begins as that of nvidia-smi topo
// does, and is one output with what stands around it.
func TestOneSectionOfShowtopo(t *testing.T) {
	t.Parallel()
	const begin, end = "============================ ROCm System Management Interface ============================\n", "================================== End of ROCm SMI Log ===================================\n"
	const section = "=============================== Link Type between two GPUs ===============================\n       GPU0         GPU1         \nGPU0   0            XGMI         \nGPU1   XGMI         0            \n"
	for name, file := range map[string]string{"whole": begin + section + end, "without its borders": section, "behind a command": "+ rocm-smi --showtopotype\n\n\n" + begin + section + end} {
		r, err := Read("f", []byte(file))
		if err != nil || r.Kind != "rocm-smi" || len(r.Others) > 0 || len(r.Problems) > 0 || !strings.Contains(content(t, r.Content), `"type":"XGMI"`) {
			t.Errorf("%s: %v, %+v", name, err, r)
		}
	}
}

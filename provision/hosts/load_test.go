// SPDX-License-Identifier: Apache-2.0

package hosts

import (
	"fmt"
	"os"
	"reflect"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/engine/evidence"
)

func TestParseProbe(t *testing.T) {
	t.Parallel()
	got := parseProbe("has ib_write_bw\n" +
		"gid mlx5_0 0 fe80:0000:0000:0000:0a3f:a1ff:fe00:0001 IB/RoCE v1\n" +
		"gid mlx5_0 1 fe80:0000:0000:0000:0a3f:a1ff:fe00:0001 RoCE v2\n" +
		"gid mlx5_0 2 0000:0000:0000:0000:0000:ffff:0a4d:100b IB/RoCE v1\n" +
		"gid mlx5_0 3 0000:0000:0000:0000:0000:ffff:0a4d:100b RoCE v2\n" +
		"gid mlx5_0 5 0000:0000:0000:0000:0000:ffff:0a4d:200b RoCE v2\n" +
		"gid mlx5_1 1 fe80:0000:0000:0000:0a3f:a1ff:fe00:0002 RoCE v2\n" +
		"gid mlx5_2 x fe80:: RoCE v2\n" + "has rm\n" + "gid\n")
	if want := (probe{writes: true, gids: map[string]int{"mlx5_0": 3, "mlx5_1": 1}}); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v", got)
	}
}

func FuzzParseProbe(f *testing.F) {
	f.Add("has ib_write_bw\ngid mlx5_0 3 0000:0000:0000:0000:0000:ffff:0a4d:100b RoCE v2\n")
	f.Fuzz(func(t *testing.T, text string) {
		for device, n := range parseProbe(text).gids {
			if n < 0 || strings.ContainsAny(device, " \n") {
				t.Errorf("%q: %d", device, n)
			}
		}
	})
}

// writeBW is ib_write_bw: a server waits, a client prints a table. The rate of a client is
// that of its device.
const writeBW = `for a; do last=$a; [ "$prev" = -d ] && dev=$a; prev=$a; done
if [ "$last" = -F ]; then sleep 1; exit 0; fi
rate=$(cat "$0.$dev" 2>/dev/null || echo 46000)
echo " Link type : IB"
echo " #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]"
echo " 1048576    1000           0.00               $rate.00             0.046"`

// nvbandwidth is what the program prints of two H100, the second with this rate from the
// host, GB/s.
func nvbandwidth(second string) string {
	text := "nvbandwidth Version: v0.8\nDevice 0: NVIDIA H100 80GB HBM3 (00000000:19:00)\nDevice 1: NVIDIA H100 80GB HBM3 (00000000:3b:00)\n"
	for _, t := range []struct{ test, head, row string }{
		{"device_local_copy", "memcpy local GPU(column) bandwidth (GB/s)", " 0   1519.10   1518.20\n"},
		{"host_to_device_memcpy_ce", "memcpy CE CPU(row) -> GPU(column) bandwidth (GB/s)", " 0     55.40     " + second + "\n"},
		{"device_to_host_memcpy_ce", "memcpy CE CPU(row) <- GPU(column) bandwidth (GB/s)", " 0     55.10     55.00\n"},
		{"device_to_device_memcpy_read_ce", "memcpy CE GPU(row) -> GPU(column) bandwidth (GB/s)", " 0       N/A    391.00\n 1    391.10       N/A\n"},
	} {
		sum := 0.0
		for line := range strings.Lines(t.row) {
			for _, f := range strings.Fields(line)[1:] {
				v, _ := strconv.ParseFloat(f, 64) // N/A is none
				sum += v
			}
		}
		text += fmt.Sprintf("\nRunning %s.\n%s\n           0         1\n%s\nSUM %s %.2f\n", t.test, t.head, t.row, t.test, sum)
	}
	return text
}

// TestPeerLoad: with --load, RDMA writes between nodes find the slow rail, and whoever
// has no ib_write_bw, or is in use, is left out and said to be; one in use is not accepted. A bandwidth that no
// program measures is not judged, and never passed.
func TestPeerLoad(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"n1", "n2", "n3", "n4", "n5", "n6"} {
		m := newMachine(t, "S-"+name)
		for i := 2; i < 8; i++ { // more transfers at a time than a connection takes commands
			at := fmt.Sprintf("%s0000:17:%02x.0/0000:%02x:00.0", root, i+2, 0x60+i)
			m.function(at, "0x020700", "0x15b3", "0x1021", "16")
			m.rail(at, i)
		}
		m.script("ib_write_bw", writeBW)
		switch name {
		case "n1", "n2":
			m.programs["/usr/local/bin/nvbandwidth.txt"] = nvbandwidth(map[string]string{"n1": "55.30", "n2": "21.30"}[name])
			m.script("/usr/local/bin/nvbandwidth", `cat "$0.txt"`)
		case "n3":
			m.programs["ib_write_bw.mlx5_1"] = "20000"
		case "n5":
			delete(m.programs, "ib_write_bw")
		case "n6":
			m.programs["nvidia-smi.xml"] = usedGPUs(t)
		}
		w.start(name, m)
	}
	o := w.options()
	o.Load, o.Text.Evidence = true, t.TempDir()
	in := w.test(o)
	got := verdicts(in)
	for _, want := range []string{"n1 accepted\n", "n2 not accepted [n2 GPU 1 at 0000:3b:00.0, serial 1650000000001: ", "n4 accepted\n", "n5 accepted\n", "n6 unfinished: it was not loaded, as --load asks: the node is in use: process 4711 (python3 & friends) uses GPU 0", "n3 not accepted [n3 rail 1"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is not in\n%s", want, got)
		}
	}
	untested := strings.Join(in.Untested, "\n")
	for _, want := range []string{"there is no ib_write_bw on the node (package perftest): n5", "bandwidths of GPUs were not measured: n6", "all-reduces were not run"} {
		if !strings.Contains(untested, want) {
			t.Errorf("%q is not in\n%s", want, untested)
		}
	}
	measured := 0
	for _, m := range in.Tests {
		for _, x := range m.Measurements {
			for _, ref := range x.Evidence {
				if path, is := evidence.Path(o.Text.Evidence, ref); !is {
					t.Errorf("%s: evidence %q", x.Check, ref)
				} else if b, err := os.ReadFile(path); err != nil || len(b) == 0 {
					t.Errorf("%s: evidence %s: %d bytes, %v", x.Check, ref, len(b), err)
				}
			}
			if strings.HasPrefix(x.Check, "gpu.") {
				measured++
				if x.Nodes[0] != "n1" && x.Nodes[0] != "n2" {
					t.Errorf("measured by no program: %+v", x)
				}
			}
			if x.Check == "rdma.write_bw" && (strings.Contains(strings.Join(x.Nodes, " "), "n5") || strings.Contains(strings.Join(x.Nodes, " "), "n6")) {
				t.Errorf("%v was loaded", x.Nodes)
			}
		}
	}
	if measured < 8 {
		t.Errorf("%d bandwidths of GPUs were measured", measured)
	}
	text := "hardware \"h\" {\n}\nvalidation \"v\" {\n  limit \"all_reduce.busbw\" {\n    at_least = \"1GB/s\"\n  }\n}\n"
	if _, diags, _ := ParseExpect("e.hcl", []byte(text), true, time.Now()); len(diags) != 1 || diags[0].Summary != "All-reduce is not run on these nodes" {
		t.Errorf("%+v", diags)
	}
}

// TestPeerAMD: GPUs of AMD are what amd-smi says they are.
func TestPeerAMD(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for _, name := range []string{"n1", "n2", "n3"} {
		m := newMachine(t, "S-"+name)
		m.remove(gpu0)
		m.remove(gpu1)
		delete(m.programs, "nvidia-smi")
		for _, at := range []string{root + "0000:17:02.0/0000:0c:00.0", root + "0000:17:03.0/0000:1c:00.0"} {
			m.function(at, "0x120000", "0x1002", "0x74a1", "16")
		}
		m.script("amd-smi", `case "$1" in
static | metric | topology) cat "$0.$1" ;;
bad-pages) echo '[{"gpu": 0, "retired": "No bad pages found."}, {"gpu": 1, "retired": "No bad pages found.", "pending": "No bad pages found."}]' ;;
*) exit 2 ;;
esac`)
		for _, f := range []string{"static", "metric", "topology"} {
			m.programs["amd-smi."+f] = strings.ReplaceAll(fixture(t, "amdsmi/testdata/"+f+".json"), `"total_uncorrectable_count": 4`, `"total_uncorrectable_count": 0`)
		}
		w.start(name, m)
	}
	text, err := WriteExpect(t.Context(), w.options())
	if err != nil || !strings.Contains(string(text), `vendor       = "amd"`) || !strings.Contains(string(text), `interconnect = "xgmi"`) || !strings.Contains(string(text), "count        = 2") {
		t.Errorf("%v\n%s", err, text)
	}
	w.want(w.test(w.options()), "n1 accepted\nn2 accepted\nn3 accepted\n")
}

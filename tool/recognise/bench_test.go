// SPDX-License-Identifier: Apache-2.0

package recognise

import (
	"bufio"
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"runtime/debug"
	"strconv"
	"testing"

	"github.com/ironrail/ironrail/internal/cputime"
)

// longLogs make line n of a log, whose every rare-th line is one that is kept.
var longLogs = []struct {
	name string
	rare int
	line func(n int, kept bool) string
}{
	{"dmesg/1%", 100, func(n int, kept bool) string { return uptime(n) + kernelLine(n, kept) }},
	{"dmesg/all", 1, func(n int, kept bool) string { return uptime(n) + kernelLine(n, kept) }},
	{"journal/1%", 100, func(n int, kept bool) string {
		return fmt.Sprintf("Feb %2d %02d:%02d:%02d node%03d kernel: %s%s", 1+n/86400%28, n/3600%24, n/60%60, n%60, n%128, uptime(n), kernelLine(n, kept))
	}},
	{"nccl-log/1%", 100, ncclLine},
	{"nccl-log/all", 1, ncclLine},
	{"opensm/1%", 100, opensmLine},
	{"opensm/all", 1, opensmLine},
	{"fabricmanager/1%", 100, fabricManagerLine},
	{"fabricmanager/all", 1, fabricManagerLine},
}

func opensmLine(n int, kept bool) string {
	at := fmt.Sprintf("Nov %2d %02d:%02d:%02d %06d [CC8B7E80] ", 1+n/86400%28, n/3600%24, n/60%60, n%60, n%1000000)
	if kept {
		return at + fmt.Sprintf("0x01 -> log_rcv_cb_error: ERR 3111: Received MAD with error status = 0x1C attr_id 0x15 to lid %d", n%49152)
	}
	return at + fmt.Sprintf("0x02 -> osm_report_notice: Reporting Generic Notice type:4 num:144 from LID:%d GID:fe80::9403:f6ff:fe%02x:%04x", n%49152, n>>16&255, n&65535)
}

func fabricManagerLine(n int, kept bool) string {
	at := fmt.Sprintf("[Nov %02d 2026 %02d:%02d:%02d] ", 1+n/86400%28, n/3600%24, n/60%60, n%60)
	if kept {
		return at + fmt.Sprintf("[ERROR] [tid 1584] detected NVSwitch non-fatal error 12028 on fid 0 on NVSwitch pci bus id 00000000:%02x:00.0 physical id %d port %d", 5+n%4, n%4, n%64)
	}
	return at + fmt.Sprintf("[INFO] [tid 1584] Sending inband response message:  Message header details: magic Id:adbc request Id:%016x status:0 type:2 length:34", n)
}

func uptime(n int) string { return fmt.Sprintf("[%5d.%06d] ", n/1000, n*977%1000000) }

func kernelLine(n int, kept bool) string {
	if kept {
		return fmt.Sprintf("NVRM: Xid (PCI:0000:%02x:00): 63, pid=%d, name=python3, Row Remapper: New row (0x%x) marked for remapping", 0x18+n%8, n, n)
	}
	return fmt.Sprintf("audit: type=1400 audit(%d.%03d:%d): apparmor=\"ALLOWED\" operation=\"open\" pid=%d comm=\"python3\"", 1700000000+n/1000, n%1000, n, n%4000000)
}

func ncclLine(n int, kept bool) string {
	rank := n % 1024
	begin := fmt.Sprintf("node%03d:%d:%d [%d] NCCL INFO ", rank/8, 4000+rank, 9000+rank, rank%8)
	if kept {
		return begin + fmt.Sprintf("Channel %02d/0 : %d[%d] -> %d[%d] [send] via NET/IB/%d/GDRDMA", n/1024%16, rank, rank%8, (rank+8)%1024, rank%8, rank%8)
	}
	return begin + fmt.Sprintf("AllReduce: opCount %x sendbuff 0x7f%010x recvbuff 0x7f%010x count %d datatype 9 op 0 root 0 comm 0x55d0 [nranks=1024]", n/1024, n, n+4096, 1<<20)
}

// makeLog writes so many bytes of a log, and what its last line has more.
func makeLog(b *testing.B, name string, size, rare int, line func(int, bool) string) {
	b.Helper()
	f, err := os.Create(name)
	if err != nil {
		b.Fatal(err)
	}
	out := bufio.NewWriter(f)
	for n, written := 0, 0; written < size; n++ {
		w, _ := out.WriteString(line(n, n%rare == 0) + "\n")
		written += w
	}
	if err := out.Flush(); err != nil {
		b.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.Fatal(err)
	}
}

// BenchmarkRead reads logs of 220 MB line by line, and of 30 MB whole, as `ironrail read`
// does: MB for a second of processor time (user and system), and the most memory that
// the process had.
func BenchmarkRead(b *testing.B) {
	defer debug.SetGCPercent(debug.SetGCPercent(30))
	for _, l := range longLogs {
		b.Run(l.name, func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "log")
			makeLog(b, name, 220e6, l.rare, l.line)
			measure(b, 220e6, func() (Reading, error) {
				f, err := os.Open(name)
				if err != nil {
					return Reading{}, err
				}
				defer f.Close()
				return ReadFrom(name, f)
			})
		})
		b.Run(l.name+"/whole", func(b *testing.B) {
			name := filepath.Join(b.TempDir(), "log")
			makeLog(b, name, 30e6, l.rare, l.line)
			measure(b, 30e6, func() (Reading, error) {
				data, err := os.ReadFile(name)
				if err != nil {
					return Reading{}, err
				}
				return Read(name, data)
			})
		})
	}
}

// measure reports the processor time and the memory of a reading of so many bytes.
func measure(b *testing.B, size float64, read func() (Reading, error)) {
	b.Helper()
	debug.FreeOSMemory()
	if err := os.WriteFile("/proc/self/clear_refs", []byte("5"), 0); err != nil { // VmHWM begins anew
		b.Fatal(err)
	}
	before, n := cputime.Used(), 0
	for b.Loop() {
		r, err := read()
		if err != nil || len(r.Others) > 0 {
			b.Fatalf("%v, %d others", err, len(r.Others))
		}
		n++
	}
	b.ReportMetric(size/1e6*float64(n)/(cputime.Used()-before).Seconds(), "MB/cpu-s")
	b.ReportMetric(peakMemory(b), "MiB-peak")
}

// peakMemory is the most that the process had, in MiB.
func peakMemory(b *testing.B) float64 {
	b.Helper()
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		b.Fatal(err)
	}
	_, rest, _ := bytes.Cut(status, []byte("VmHWM:"))
	kib, err := strconv.Atoi(string(bytes.Fields(rest)[0]))
	if err != nil {
		b.Fatal(err)
	}
	return float64(kib) / 1024
}

// SPDX-License-Identifier: Apache-2.0

package nccl

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"runtime"
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/onnode"
)

// large writes what a run over nodes of two GPUs prints, with lines of the log for
// every rank in between, as a run with NCCL_DEBUG=INFO has them.
func large(w io.Writer, nodes []string, lines int) {
	whole := printed(nodes...)
	head := strings.Index(whole, "NCCL version")
	_, _ = io.WriteString(w, whole[:head])
	b := new(bytes.Buffer)
	for i, n := range nodes {
		for gpu := range 2 {
			me := 2*i + gpu
			fmt.Fprintf(b, "%s:%d:4188 [%d] NCCL INFO ncclCommInitRankConfig comm 0x55d0 rank %d nranks %d cudaDev %d busId 1b000 commId 0xabc - Init COMPLETE\n", n, 4100+gpu, gpu, me, 2*len(nodes), gpu)
			for k := range lines {
				fmt.Fprintf(b, "%s:%d:4188 [%d] NCCL INFO Channel %02d/0 : %d[%d] -> %d[%d] [send] via NET/IB/0/GDRDMA\n", n, 4100+gpu, gpu, k, me, gpu, me+2, gpu)
			}
		}
		_, _ = w.Write(b.Bytes())
		b.Reset()
	}
	_, _ = io.WriteString(w, whole[head:])
}

func names(n int) (list []string) {
	for i := range n {
		list = append(list, fmt.Sprintf("n%04d", i))
	}
	return list
}

// TestReadLarge: an output of 8,192 ranks is judged whole, and little of it is kept.
func TestReadLarge(t *testing.T) {
	t.Parallel()
	nodes := names(4096)
	c := test(nodes...)
	r := NewReader()
	large(r.Stdout(), nodes, 8)
	m, err := c.Judge(r)
	if err != nil || m.BusBW < 428e9 || len(m.Indirect) != 0 {
		t.Errorf("%v, busbw %g, %v", err, m.BusBW, m.Indirect)
	}
	if r.bytes < 6<<20 {
		t.Errorf("the output has %d bytes only", r.bytes)
	}
}

// TestCut: what cannot be kept is not judged, and speaks against the output.
func TestCut(t *testing.T) {
	t.Parallel()
	whole := printed("n1", "n2")
	for _, c := range []struct{ name, in, want string }{
		{"long line", "x" + strings.Repeat("y", 64<<10) + "\n" + whole, "a line of more than 64 KiB"},
		{"tests without end", strings.Repeat(printed("n1"), 65), "more than 64 tests"},
	} {
		_, err := test("n1", "n2").Read([]byte(c.in))
		if !errors.Is(err, onnode.ErrCut) || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: got %v", c.name, err)
		}
	}
	if _, err := test("n1", "n2").Read([]byte(whole[:strings.Index(whole, "  1073741824  ")])); err == nil || errors.Is(err, onnode.ErrCut) || !strings.Contains(err.Error(), "no row of results") {
		t.Errorf("without a row: %v", err)
	}
}

// TestManyWarnings: a warning of every rank is counted and not kept each.
func TestManyWarnings(t *testing.T) {
	t.Parallel()
	r := NewReader()
	whole := printed("n1", "n2")
	head := strings.Index(whole, "NCCL version")
	_, _ = io.WriteString(r.Stdout(), whole[:head])
	for i := range 5000 {
		_, _ = fmt.Fprintf(r.Stdout(), "n1:%d:1 [0] net_ib.cc:1 NCCL WARN something of %d\n", i, i)
	}
	_, _ = io.WriteString(r.Stdout(), whole[head:])
	if _, err := test("n1", "n2").Judge(r); err != nil {
		t.Error(err)
	}
}

// BenchmarkRead reads a log of 8,192 ranks with 512 lines each: bytes per second, and
// what is kept of it.
func BenchmarkRead(b *testing.B) {
	nodes := names(4096)
	for b.Loop() {
		var before, after runtime.MemStats
		runtime.GC()
		runtime.ReadMemStats(&before)
		r := NewReader()
		large(r.Stdout(), nodes, 512)
		b.SetBytes(r.bytes)
		runtime.GC()
		runtime.ReadMemStats(&after)
		b.ReportMetric(float64(int64(after.HeapAlloc)-int64(before.HeapAlloc))/(1<<20), "MiB-kept")
		if _, err := test(nodes...).Judge(r); err != nil {
			b.Fatal(err)
		}
	}
}

// Read is Judge of a whole output.
func (t Test) Read(output []byte) (Measured, error) {
	r := NewReader()
	_, _ = r.Stdout().Write(output) // never fails
	return t.Judge(r)
}

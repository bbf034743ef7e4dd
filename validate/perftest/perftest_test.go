// SPDX-License-Identifier: Apache-2.0

package perftest

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"
)

const table = `
 Link type       : Ethernet
 Mtu             : 1024[B]
 #bytes     #iterations    BW peak[MB/sec]    BW average[MB/sec]   MsgRate[Mpps]
Conflicting CPU frequency values detected: 800.000000 != 3300.000000. CPU Frequency is not max.
 65536      1000             13.10              12.60		   0.000202
---------------------------------------------------------------------------------------
`

func TestParse(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in string
		want     float64 // bytes per second of the largest size
		fails    bool
		notes    int
	}{
		{"MiB", table, 12.60 * (1 << 20), false, 1},
		{"gigabits", " #bytes #iterations BW peak[Gb/sec] BW average[Gb/sec] MsgRate[Mpps]\n 8388608 5000 393.21 392.5 0.005849\n", 392.5 * 125e6, false, 0},
		{"new name of MiB", " #bytes #iterations BW peak[MiB/sec] BW average[MiB/sec] MsgRate[Mpps]\n 64 5000 0.00 2 0.1\n", 2 << 20, false, 0},
		{"largest of several", " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n 2 10 1 1 1\n 4096 10 9 8 1\n 64 10 3 3 1\n", 8 << 20, false, 0},
		{"unit not known", " #bytes #iterations BW peak[kB/sec] BW average[kB/sec] MsgRate[Mpps]\n 64 5000 0 2 0.1\n", 0, true, 0},
		{"no average", " #bytes #iterations BW peak[MB/sec]\n 64 5000 0 2 0.1\n", 0, true, 0},
		{"refused", "Couldn't connect to 10.77.0.12:18515\nUnable to open file descriptor for socket connection\n", 0, true, 2},
		{"empty", "", 0, true, 0},
		{"nan", " #bytes #iterations BW peak[MB/sec] BW average[MB/sec] MsgRate[Mpps]\n 64 5000 nan nan 0.1\n", 0, true, 0},
		{"row without header", " 64 5000 1 2 0.1\n", 0, true, 0},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			r, err := Parse([]byte(c.in))
			if (err != nil) != c.fails || len(r.Notes) != c.notes {
				t.Fatalf("got %+v, %v", r, err)
			}
			if row, ok := r.Largest(); ok == c.fails || math.Abs(row.Average-c.want) > 1 {
				t.Errorf("got %v, want %v", row.Average, c.want)
			}
		})
	}
	if r, err := Parse([]byte(table)); err != nil || r.Link != "Ethernet" || r.MTU != 1024 {
		t.Errorf("%+v %v", r, err)
	}
	if _, err := Parse([]byte("nothing")); !errors.Is(err, ErrNoTable) {
		t.Errorf("got %v", err)
	}
}

// TestRealOutputs reads outputs of others when they lie beside the repository.
func TestRealOutputs(t *testing.T) {
	t.Parallel()
	dir := filepath.Join("..", "..", "..", "shared", "samples", "ib_write_bw")
	if _, err := os.Stat(dir); err != nil {
		t.Skip("no samples beside the repository: ", err)
	}
	for _, c := range []struct {
		file string
		rows int
		want float64 // of the largest size
	}{
		{"superbench-8M.log", 2, 24056.72 * (1 << 20)}, // both sides in one file
		{"superbench-all-sizes.log", 0, 0},
		{"rocm-bidir-all-sizes.log", 0, 0},
	} {
		b, err := os.ReadFile(filepath.Join(dir, c.file))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Parse(b)
		row, ok := r.Largest()
		t.Logf("%s: %d rows, largest %d bytes at %.2f GB/s, link %s", c.file, len(r.Rows), row.Size, row.Average/1e9, r.Link)
		if err != nil || !ok {
			t.Errorf("%s: %v", c.file, err)
		}
		if c.rows > 0 && (len(r.Rows) != c.rows || math.Abs(row.Average-c.want) > 1) {
			t.Errorf("%s: %+v", c.file, r.Rows)
		}
		if c.rows == 0 && (len(r.Rows) < 20 || row.Size < 1<<20 || row.Average < 10e9 || row.Average > 60e9) {
			t.Errorf("%s: %d rows, %+v", c.file, len(r.Rows), row)
		}
	}
}

func TestArgv(t *testing.T) {
	t.Parallel()
	w := WriteBW{Device: "rxe0", GIDIndex: 1, Size: 65536, Iterations: 1000, Port: 18515}
	server := []string{"ib_write_bw", "-d", "rxe0", "-x", "1", "-s", "65536", "-n", "1000", "-p", "18515", "-F"}
	if got := w.Argv(""); !slices.Equal(got, server) {
		t.Errorf("got %v", got)
	}
	if got := w.Argv("10.77.0.12"); !slices.Equal(got, append(server, "10.77.0.12")) {
		t.Errorf("got %v", got)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(table))
	f.Add([]byte("#bytes BW average[Gb/sec]\n1 1 1 1e309\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		r, err := Parse(b)
		if err == nil && len(r.Rows) == 0 {
			t.Error("no rows and no error")
		}
		for _, row := range r.Rows {
			if row.Size <= 0 || math.IsNaN(row.Average) || math.IsInf(row.Average, 0) || row.Average < 0 {
				t.Errorf("%+v", row)
			}
		}
	})
}

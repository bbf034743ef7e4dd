// SPDX-License-Identifier: Apache-2.0

package nodecheck

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

func TestArrays(t *testing.T) {
	t.Parallel()
	const text = `Personalities : [raid1] [linear] [raid10]
md126 : active raid10 sdd5[3] sdc5[2] sdb5[1] sda5[0]
      4190208 blocks super 1.2 512K chunks 2 near-copies [4/4] [UUUU]
      	resync=DELAYED
      bitmap: 1/1 pages [4KB], 65536KB chunk

md127 : active raid1 vda4[0] vdb4[1]
      3143680 blocks super 1.2 [2/2] [UU]
      [=>...................]  resync =  6.7% (212416/3143680) finish=1.1min speed=42483K/sec

md1 : active (auto-read-only) raid1 vda3[0]
      260096 blocks super 1.2 [2/1] [U_]
      [======>..............]  recovery = 31.5% (82176/260096) finish=0.0min speed=82176K/sec

md9 : inactive vdc[0](S)
      1046528 blocks super 1.2

unused devices: <none>
`
	want := []wire.Array{
		{Name: "md126", Level: "raid10", Disks: 4, Active: 4, Doing: "resync"},
		{Name: "md127", Level: "raid1", Disks: 2, Active: 2, Doing: "resync", Percent: 6.7},
		{Name: "md1", Level: "raid1", Disks: 2, Active: 1, Doing: "recovery", Percent: 31.5},
	}
	if got := Arrays(text); !slices.Equal(got, want) {
		t.Errorf("%+v", got)
	}
	if got := Arrays("Personalities : \nunused devices: <none>\n"); len(got) > 0 {
		t.Errorf("without arrays: %+v", got)
	}
}

// SPDX-License-Identifier: Apache-2.0

package predict

import (
	"fmt"
	"testing"

	"github.com/ironrail/ironrail/inventory/unit"
)

// gpuSite is a site of n nodes with eight GPUs, 8 to a rack, behind one
// controller with an uplink.
func gpuSite(n int, link unit.BitRate) (*Options, func() (Prediction, error)) {
	name := func(i int) string { return fmt.Sprintf("n%05d", i) }
	p := sitePlan(n, 8, name)
	o := &Options{Capacity: limits, Uplink: link, Profiles: make(map[string]Profile, n),
		Images: map[string]Image{"os": {Wire: 1181116006, Disk: 4 * gib}}}
	for i := range n {
		o.Profiles[name(i)] = Profile{Hardware: "dgx", GPUs: 8, Memory: 2 * tib, NIC: 10e9, Disk: "nvme", Boot: "uefi-http"}
	}
	return o, func() (Prediction, error) { return Estimate(p, *o) }
}

func BenchmarkEstimate(b *testing.B) {
	for _, n := range []int{16, 128, 1024, 4096, 12500} {
		b.Run(fmt.Sprint(n), func(b *testing.B) {
			_, estimate := gpuSite(n, 25e9)
			b.ReportAllocs()
			for b.Loop() {
				p, err := estimate()
				if err != nil {
					b.Fatal(err)
				}
				b.ReportMetric(p.Expected.Minutes(), "predicted-min")
			}
		})
	}
}

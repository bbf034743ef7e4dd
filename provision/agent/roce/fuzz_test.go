// SPDX-License-Identifier: Apache-2.0

package roce

import (
	"encoding/json"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

// FuzzParse: parameters that are taken have an address and a NIC for each rail, once.
func FuzzParse(f *testing.F) {
	f.Add([]byte(`{"mtu":9000,"ports":[{"rail":0,"pci":"0000:18:00.0","address":"10.200.0.1/31","table":100,"gateway":"10.200.0.0"}],"lossless":{"priority":3,"dscp":26,"cnp":48,"cnp_priority":6,"traffic_class":106,"pfc":true}}`))
	f.Add([]byte(`{"mtu":9000,"ports":[{"rail":-1},{"rail":0,"address":"x"},{"rail":0,"mac":"02:00:00:00:00:01","address":"::1/128","table":254}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		var p wire.RoCEParams
		if json.Unmarshal(b, &p) != nil {
			return
		}
		ports, err := parse(p)
		if err != nil {
			return
		}
		seen := map[int]bool{}
		for _, q := range ports {
			if seen[q.Rail] || !q.address.IsValid() || q.PCI == "" && q.MAC.IsZero() || q.Table == 254 || q.Table == 255 {
				t.Errorf("taken: %+v", q)
			}
			seen[q.Rail] = true
		}
	})
}

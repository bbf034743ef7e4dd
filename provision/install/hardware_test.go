// SPDX-License-Identifier: Apache-2.0

package install

import "testing"

func TestSameBus(t *testing.T) {
	t.Parallel()
	tests := []struct {
		want, got string
		same      bool
	}{
		{"", "hdd", true}, {"nvme", "nvme", true}, {"virtio", "virtio", true}, {"sata", "ssd", true}, {"sata", "hdd", true}, {"sas", "ssd", true},
		{"nvme", "ssd", false}, {"sata", "nvme", false}, {"virtio", "hdd", false},
	}
	for _, tt := range tests {
		if got := sameBus(tt.want, tt.got); got != tt.same {
			t.Errorf("type %q for a disk %q: %v", tt.want, tt.got, got)
		}
	}
}

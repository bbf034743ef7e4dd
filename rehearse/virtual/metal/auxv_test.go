// SPDX-License-Identifier: Apache-2.0

package metal

import (
	"testing"
	"testing/fstest"

	"github.com/ironrail/ironrail/provision/agent/health"
	"github.com/ironrail/ironrail/provision/agent/sysfs"
)

// TestPageSize: the agent reads the page size of the kernel that a simulated node runs.
func TestPageSize(t *testing.T) {
	t.Parallel()
	for release, want := range map[string]int{"6.1.0-40-amd64": 4096, "6.12.57+deb13-arm64": 4096, "6.8.0-94-nvidia-64k": 65536, "5.14.0-570.12.1.el9_6.aarch64+64k": 65536, "": 4096} {
		if got := health.Read(sysfs.Of(fstest.MapFS{"proc/self/auxv": {Data: []byte(auxv(release))}})).PageSize; got != want {
			t.Errorf("%s: got %d, want %d", release, got, want)
		}
	}
}

// SPDX-License-Identifier: Apache-2.0

package install

import (
	"net/http"
	"net/http/httptest"
	"net/netip"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
)

// TestOtherFetchIsTold: who asks for the boot files of another node is told with all
// that is known of it, unknown clients too, and a node that asks for its own is not.
func TestOtherFetchIsTold(t *testing.T) {
	t.Parallel()
	answers := addr.MAC{2, 0, 0, 0, 0, 0x66}
	for _, tt := range []struct {
		name, from, path string
		unknown          bool
		owner            string // of from; "-": nothing is told
	}{
		{"another node, initrd", "10.0.0.12", "/boot/n1-a/initrd", false, "n2"},
		{"another node, kernel", "10.0.0.12", "/boot/n1-a/vmlinuz", false, "n2"},
		{"an unknown client", "10.0.0.99", "/boot/n1-a/initrd", true, ""},
		{"an unknown client with an attempt that is not open", "10.0.0.99", "/boot/n1-b/initrd", true, "-"},
		{"an unknown client with another path", "10.0.0.99", "/boot/", true, "-"},
		{"the node", "10.0.0.11", "/boot/n1-a/initrd", false, "-"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			f, _ := bootFilesOfTwo()
			var told []OtherFetch
			f.OtherFetch = func(o OtherFetch) { told = append(told, o) }
			f.MAC = func(a netip.Addr) (addr.MAC, bool) { return answers, a.String() == tt.from }
			fetchFrom(f, "10.0.0.11", "/boot/n1-a/initrd")
			if tt.unknown {
				r := httptest.NewRequest(http.MethodGet, tt.path, nil)
				r.RemoteAddr = tt.from + ":4000"
				f.UnknownClient(r)
			} else {
				fetchFrom(f, tt.from, tt.path)
			}
			if tt.owner == "-" {
				if len(told) != 0 {
					t.Errorf("told %+v", told)
				}
				return
			}
			if len(told) != 1 {
				t.Fatalf("told %d times, want once: %+v", len(told), told)
			}
			o := told[0]
			if o.Node != "n1" || o.Attempt != "n1-a" || o.From.String() != tt.from || o.Owner.Node != tt.owner || o.MAC != answers ||
				o.Request != "GET "+tt.path || o.NodeFrom.String() != "10.0.0.11" || time.Since(o.At) > time.Minute {
				t.Errorf("told %+v", o)
			}
		})
	}
}

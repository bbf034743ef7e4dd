// SPDX-License-Identifier: Apache-2.0

package install

import (
	"bytes"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"strings"
	"testing"
	"time"

	"github.com/ironrail/ironrail/internal/addr"
	"github.com/ironrail/ironrail/internal/wire"
	"github.com/ironrail/ironrail/provision/hub"
	"github.com/ironrail/ironrail/provision/netboot"
)

// tinyRamdisk is a kernel and an initrd that ends with the node's token.
type tinyRamdisk struct{}

func (tinyRamdisk) Open(string) (Segment, []Segment, func(), error) {
	return bytes.NewReader([]byte("kernel")), []Segment{bytes.NewReader([]byte("shared"))}, func() {}, nil
}
func (tinyRamdisk) Own(b wire.Boot) ([]byte, error) { return []byte(b.Token), nil }

// recorderFunc makes a Recorder of a function.
type recorderFunc func(netboot.Evidence)

// Record implements netboot.Recorder.
func (f recorderFunc) Record(e netboot.Evidence) { f(e) }

// bootFilesOfTwo serves n1 and n2, both with an open attempt.
func bootFilesOfTwo() (*BootFiles, *[]netboot.Evidence) {
	clients := []netboot.Client{
		{Node: "n1", MACs: []addr.MAC{{2, 0, 0, 0, 0, 1}}, Address: netip.MustParsePrefix("10.0.0.11/24")},
		{Node: "n2", MACs: []addr.MAC{{2, 0, 0, 0, 0, 2}}, Address: netip.MustParsePrefix("10.0.0.12/24")},
	}
	boots := NewBoots([]byte(strings.Repeat("k", 32)), clients, nil)
	for _, c := range clients {
		boots.Set(Attempt{ID: c.Node + "-a", Node: c.Node, Phase: Open, Expires: time.Now().Add(time.Hour)})
	}
	var saw []netboot.Evidence
	return &BootFiles{Boots: boots, Ramdisk: tinyRamdisk{}, Words: func(string) (wire.Boot, error) { return wire.Boot{}, nil },
		Recorder: recorderFunc(func(e netboot.Evidence) { saw = append(saw, e) })}, &saw
}

func fetchFrom(f *BootFiles, from, path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, path, nil)
	r.RemoteAddr = from + ":4000"
	w := httptest.NewRecorder()
	f.ServeHTTP(w, r)
	return w
}

// TestBootFilesAreTheirNodesOnly: the address of another known node gets none of
// them, and that is told.
func TestBootFilesAreTheirNodesOnly(t *testing.T) {
	t.Parallel()
	for _, file := range []string{kernelName, initrdName} {
		for _, tt := range []struct {
			name, from, node string
			status           int
		}{
			{"the node", "10.0.0.11", "", http.StatusOK},
			{"another node", "10.0.0.12", "n2", http.StatusForbidden},
			{"an unknown client", "10.0.0.99", "", http.StatusForbidden},
		} {
			t.Run(file+" for "+tt.name, func(t *testing.T) {
				t.Parallel()
				f, saw := bootFilesOfTwo()
				fetchFrom(f, "10.0.0.11", "/boot/n1-a/"+initrdName)
				w := fetchFrom(f, tt.from, "/boot/n1-a/"+file)
				if w.Code != tt.status || strings.Contains(w.Body.String(), f.Boots.Token("n1-a")) && tt.status != http.StatusOK {
					t.Errorf("got %d %q, want %d", w.Code, w.Body, tt.status)
				}
				if tt.status == http.StatusOK {
					if len(*saw) != 0 {
						t.Errorf("evidence %+v", *saw)
					}
					return
				}
				if len(*saw) != 1 || (*saw)[0].What != EventOtherNode || (*saw)[0].Node != tt.node || (*saw)[0].Address.String() != tt.from ||
					!strings.Contains((*saw)[0].Detail, "10.0.0.11 fetched them") || !strings.Contains((*saw)[0].Detail, "n1") {
					t.Errorf("evidence %+v", *saw)
				}
			})
		}
	}
}

// TestBootFilesOfAStolenAddress: nothing is served, and the attempt is closed.
func TestBootFilesOfAStolenAddress(t *testing.T) {
	t.Parallel()
	f, _ := bootFilesOfTwo()
	thief := addr.MAC{2, 0, 0, 0, 0, 0x66}
	f.OtherOwner = func(c netboot.Client) (addr.MAC, bool) { return thief, c.Node == "n1" }
	closed := map[string]hub.ConflictError{}
	f.Conflict = func(g hub.Grant, c hub.ConflictError) { closed[g.Node] = c }
	if w := fetchFrom(f, "10.0.0.11", "/boot/n1-a/initrd"); w.Code != http.StatusForbidden {
		t.Errorf("n1: %d", w.Code)
	}
	if w := fetchFrom(f, "10.0.0.12", "/boot/n2-a/initrd"); w.Code != http.StatusOK {
		t.Errorf("n2: %d", w.Code)
	}
	if c := closed["n1"]; len(closed) != 1 || !strings.Contains(c.Cause, thief.String()) || !strings.Contains(c.Cause, "02:00:00:00:00:01") {
		t.Errorf("closed: %+v", closed)
	}
	if f.Boots.BootedSince(hub.Grant{Node: "n1", Attempt: "n1-a"}, time.Time{}) {
		t.Error("the fetch of another machine counts as a boot of the node")
	}
}

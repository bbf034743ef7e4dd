// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"slices"
	"testing"

	"github.com/ironrail/ironrail/images"
)

func TestArchives(t *testing.T) {
	t.Parallel()
	r := Recipe{Release: "bookworm"}
	if got := r.Archives(); !slices.Equal(got, []images.Archive{{URL: ownMirror, Suite: "bookworm"}}) {
		t.Errorf("without mirrors: %v", got)
	}
	r.Mirrors = []string{"http://192.0.2.1/debian", "deb http://192.0.2.2/debian bookworm-updates main", "deb [arch=amd64 trusted=yes] http://192.0.2.3/x ./", "-"}
	want := []images.Archive{{URL: "http://192.0.2.1/debian", Suite: "bookworm"}, {URL: "http://192.0.2.2/debian", Suite: "bookworm-updates"}, {URL: "http://192.0.2.3/x", Suite: "./"}}
	if got := r.Archives(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

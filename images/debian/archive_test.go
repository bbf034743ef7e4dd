// SPDX-License-Identifier: Apache-2.0

package debian

import (
	"slices"
	"testing"
)

func TestArchives(t *testing.T) {
	t.Parallel()
	r := Recipe{Release: "bookworm"}
	if got := r.Archives(); !slices.Equal(got, []Archive{{ownMirror, "bookworm"}}) {
		t.Errorf("without mirrors: %v", got)
	}
	r.Mirrors = []string{"http://192.0.2.1/debian", "deb http://192.0.2.2/debian bookworm-updates main", "deb [arch=amd64 trusted=yes] http://192.0.2.3/x ./", "-"}
	want := []Archive{{"http://192.0.2.1/debian", "bookworm"}, {"http://192.0.2.2/debian", "bookworm-updates"}, {"http://192.0.2.3/x", "./"}}
	if got := r.Archives(); !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}

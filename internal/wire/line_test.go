// SPDX-License-Identifier: Apache-2.0

package wire_test

import (
	"strings"
	"testing"

	"github.com/ironrail/ironrail/internal/wire"
)

func TestFirstLine(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{"": "", "\n  no such thing\nat all\n": "no such thing", strings.Repeat("x", 300): strings.Repeat("x", 200)} {
		if got := wire.FirstLine([]byte(text)); got != want {
			t.Errorf("%q: %q", text, got)
		}
	}
}

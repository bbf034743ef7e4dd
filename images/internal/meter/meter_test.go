// SPDX-License-Identifier: Apache-2.0

package meter

import (
	"slices"
	"testing"
	"testing/synctest"
	"time"
)

// A transfer that goes on where another one ended has the rate of what came now.
func TestMeter(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		var got []string
		m := &Meter{Say: func(text string) { got = append(got, text) }, What: "fetched", Total: 600 << 20, Done: 100 << 20}
		unknown := &Meter{Say: func(text string) { got = append(got, text) }, What: "read"}
		for range 7 {
			m.Add(10 << 20)
			unknown.Add(1 << 20)
			time.Sleep(time.Second)
		}
		m.Add(10 << 20)
		want := []string{"fetched 160 of 600 MiB, 12 MiB/s, 37s left", "read 6 MiB, 1 MiB/s"}
		if !slices.Equal(got, want) {
			t.Errorf("%q, want %q", got, want)
		}
	})
}

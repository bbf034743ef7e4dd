// SPDX-License-Identifier: Apache-2.0

package reach

import (
	"testing"
	"testing/synctest"
	"time"
)

// TestSilentBMCHoldsUpNoPDU: a BMC without mains never answers, and its PDUs, which say
// why, are asked before it has had its time; one that answers is asked alone.
func TestSilentBMCHoldsUpNoPDU(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		takes time.Duration // of the BMC
		on    bool
		asked time.Duration // when the PDUs were asked; -1: never
		took  time.Duration
	}{
		"power is on":             {time.Second, true, -1, time.Second},
		"power is off":            {time.Second, false, time.Second, 3 * time.Second},
		"silent":                  {askLimit, false, mainsAfter, askLimit},
		"on, and slow to say so":  {5 * time.Second, true, mainsAfter, 5 * time.Second},
		"off, and slow to say so": {4 * time.Second, false, mainsAfter, mainsAfter + 2*time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				begun, asked := time.Now(), time.Duration(-1)
				askBeside(func() bool { time.Sleep(c.takes); return c.on }, func() { asked = time.Since(begun); time.Sleep(2 * time.Second) })
				if asked != c.asked || time.Since(begun) != c.took {
					t.Errorf("PDUs asked after %s, all done after %s; want %s, %s", asked, time.Since(begun), c.asked, c.took)
				}
			})
		})
	}
}

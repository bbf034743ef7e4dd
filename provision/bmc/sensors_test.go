// SPDX-License-Identifier: Apache-2.0

package bmc

import (
	"testing"
)

// TestPeerNoSensors: a BMC without a record of a sensor has none, which is no error.
func TestPeerNoSensors(t *testing.T) {
	t.Parallel()
	readings, err := open(t, startSim(t).target()).drv.(Sensors).Sensors(t.Context())
	if err != nil || len(readings) > 0 {
		t.Errorf("%+v, %v", readings, err)
	}
}

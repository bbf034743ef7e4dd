// SPDX-License-Identifier: Apache-2.0

package bmc

import "context"

// Progress tells how far the node's firmware is since its last start.
type Progress interface {
	// Progress returns it in Redfish's words (ComputerSystem.BootProgress, DSP2046),
	// or the maker's; "" where the BMC does not say.
	Progress(context.Context) (string, error)
}

var _ Progress = (*redfishDriver)(nil)

// Progress implements the interface Progress.
func (d *redfishDriver) Progress(ctx context.Context) (string, error) { return d.client.Progress(ctx) }

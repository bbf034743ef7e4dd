// SPDX-License-Identifier: Apache-2.0

package redfish

import "context"

// Progress returns how far the firmware is: BootProgress.LastState, and with "OEM"
// the maker's own word for it (OemLastState); where there is none, the POST state
// of HPE's iLO 5 and later (Oem.Hpe.PostState). "" when the service does not say.
func (c *Client) Progress(ctx context.Context) (string, error) {
	p, err := c.where(ctx)
	if err != nil {
		return "", err
	}
	var s struct {
		BootProgress struct{ LastState, OemLastState text }
		Oem          struct {
			Hpe struct{ PostState text }
		}
	}
	if _, err := c.get(ctx, p.system, &s); err != nil {
		return "", err
	}
	word := s.BootProgress.LastState
	if word == "OEM" && s.BootProgress.OemLastState != "" {
		word = s.BootProgress.OemLastState
	}
	if word == "" {
		word = s.Oem.Hpe.PostState
	}
	return OneLine(string(word)), nil
}

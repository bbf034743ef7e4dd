// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"fmt"
	"slices"
)

// The values of IndicatorLED.
const (
	ledOff = "Off"
	ledLit = "Lit"
)

// indicator is the light that locates the chassis, as IndicatorLED.
func (s *server) indicator() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return textOr(s.led, ledOff)
}

// setLight writes the light of a PATCH, which may be given by its switch or by the older property;
// when it is wrong it has answered.
func (c *call) setLight(o obj) (has, ok bool) {
	led, hasLED, ok := c.text(o, "IndicatorLED")
	if !ok {
		return false, false
	}
	if hasLED && !slices.Contains([]string{ledOff, ledLit, "Blinking"}, led) {
		c.fail("PropertyValueNotInList", led, "IndicatorLED")
		return false, false
	}
	if active, given := o["LocationIndicatorActive"]; given {
		on, isBool := active.(bool)
		if !isBool {
			c.fail("PropertyValueTypeError", fmt.Sprint(active), "LocationIndicatorActive")
			return false, false
		}
		led, hasLED = ledOff, true
		if on {
			led = ledLit
		}
	}
	if hasLED {
		c.s.mu.Lock()
		c.s.led = led
		c.s.mu.Unlock()
	}
	return hasLED, true
}

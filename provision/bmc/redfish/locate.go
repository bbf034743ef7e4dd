// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// Light is what the light that locates a chassis does, in the words of the property IndicatorLED.
type Light string

// The lights.
const (
	LightOff   Light = "Off"
	LightOn    Light = "Lit"
	LightBlink Light = "Blinking"
)

// Locating is the light as the service shows it.
type Locating struct {
	Active *bool // LocationIndicatorActive; nil: it is not shown
	LED    Light // IndicatorLED, which Active replaced; "": it is not shown
}

// Fits reports whether the light is as wanted. On and blinking are one where the service has only a
// switch, or where its light has only one of them.
func (l Locating) Fits(want Light) bool {
	if l.Active != nil {
		return *l.Active == (want != LightOff)
	}
	return l.LED != "" && (l.LED == LightOff) == (want == LightOff)
}

// String writes what the service shows.
func (l Locating) String() string {
	switch {
	case l.Active != nil && l.LED != "":
		return OneLine(fmt.Sprintf("LocationIndicatorActive reads %t, IndicatorLED %s", *l.Active, l.LED))
	case l.Active != nil:
		return fmt.Sprintf("LocationIndicatorActive reads %t", *l.Active)
	}
	return OneLine("IndicatorLED reads " + string(l.LED))
}

// Light reads the light that locates the node: of its system, else of its chassis.
func (c *Client) Light(ctx context.Context) (Locating, error) {
	l, _, err := c.light(ctx)
	return l, err
}

// light is Light, with the path of the resource that has it.
func (c *Client) light(ctx context.Context) (l Locating, path string, err error) {
	p, err := c.where(ctx)
	if err != nil {
		return l, "", err
	}
	for _, path := range []string{p.system, p.chassis} {
		if path == "" {
			continue
		}
		var doc struct {
			LocationIndicatorActive *bool
			IndicatorLED            text
		}
		if _, err := c.get(ctx, path, &doc); err != nil {
			return l, "", err
		}
		l = Locating{doc.LocationIndicatorActive, Light(doc.IndicatorLED)}
		if l.Active != nil || l.LED != "" && l.LED != "Unknown" {
			return l, path, nil
		}
	}
	return l, "", errkind.New(errkind.Unsupported, "the bmc shows no light that locates the node").Do("Look for its rack and unit: `ironrail show NODE`.")
}

// SetLight switches the light, and does not read it back. LocationIndicatorActive came with version
// 1.13 of ComputerSystem and 1.14 of Chassis; before, and beside it, there is IndicatorLED, of which
// many services know one of Lit and Blinking.
func (c *Client) SetLight(ctx context.Context, want Light) error {
	now, path, err := c.light(ctx)
	if err != nil {
		return err
	}
	if now.Active != nil {
		_, err := c.patch(ctx, path, map[string]any{"LocationIndicatorActive": want != LightOff})
		return err
	}
	_, err = c.patch(ctx, path, map[string]any{"IndicatorLED": want})
	if f, isFault := errors.AsType[*Fault](err); isFault && want != LightOff && (f.Status == 400 || f.says("indicatorled")) {
		other := LightBlink
		if strings.EqualFold(string(want), string(LightBlink)) {
			other = LightOn
		}
		_, err = c.patch(ctx, path, map[string]any{"IndicatorLED": other})
	}
	return err
}

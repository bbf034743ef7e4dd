// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// bios is what is read of the resource Bios and of its settings resource.
type bios struct {
	Attributes map[string]json.RawMessage
	Settings   struct {
		SettingsObject link
		ApplyTimes     []text `json:"SupportedApplyTimes"`
	} `json:"@Redfish.Settings"`
}

// texts returns the attributes as texts; null is "".
func (b bios) texts() map[string]string {
	out := make(map[string]string, len(b.Attributes))
	for k, raw := range b.Attributes {
		var t text
		_ = json.Unmarshal(raw, &t)
		out[k] = string(t)
	}
	return out
}

// BIOS reads the settings of the node's firmware: those in force, and those that
// the next POST takes up and that differ.
func (c *Client) BIOS(ctx context.Context) (current, pending map[string]string, err error) {
	now, _, future, err := c.bios(ctx)
	if err != nil {
		return nil, nil, err
	}
	current, pending = now.texts(), map[string]string{}
	for k, v := range future.texts() {
		if v != current[k] {
			pending[k] = v
		}
	}
	return current, pending, nil
}

// bios reads both resources; settings is the path of the second, "" where changes
// are written to the first.
func (c *Client) bios(ctx context.Context) (now bios, settings string, future bios, err error) {
	s, err := c.system(ctx)
	if err != nil {
		return now, "", future, err
	}
	if s.Bios == "" {
		return now, "", future, unsupported("BIOS settings")
	}
	if _, err = c.get(ctx, string(s.Bios), &now); err != nil {
		return now, "", future, err
	}
	if len(now.Attributes) == 0 { // BlueField, when its BMC was down during POST
		return now, "", future, errkind.New(errkind.Refused, "the bmc does not know the node's BIOS settings").
			Do("Restart the node once, so that its firmware reports them.")
	}
	if settings = string(now.Settings.SettingsObject); settings == "" {
		return now, string(s.Bios), future, nil
	}
	_, err = c.get(ctx, settings, &future)
	return now, settings, future, err
}

// SetBIOS asks for settings, all in one request: iDRAC makes a job of each, and
// takes no second one while it is pending. They take effect at the next POST.
func (c *Client) SetBIOS(ctx context.Context, want map[string]string) error {
	now, settings, _, err := c.bios(ctx)
	if err != nil {
		return err
	}
	attributes := map[string]any{}
	for _, k := range slices.Sorted(maps.Keys(want)) {
		old, ok := now.Attributes[k]
		if !ok {
			return errkind.New(errkind.Unsupported, "the node's firmware has no setting %q%s", k, near(k, now.Attributes))
		}
		if attributes[k], err = typed(old, want[k]); err != nil {
			return errkind.New(errkind.Invalid, "BIOS setting %s: %w", k, err).Do("Correct the value in the inventory.")
		}
	}
	body := map[string]any{"Attributes": attributes}
	if slices.Contains(now.Settings.ApplyTimes, "OnReset") {
		body["@Redfish.SettingsApplyTime"] = map[string]string{"ApplyTime": "OnReset"}
	}
	_, err = c.patch(ctx, settings, body)
	return err
}

// typed returns a value in the type that the attribute has now.
func typed(old json.RawMessage, want string) (any, error) {
	switch first := (strings.TrimSpace(string(old)) + " ")[:1]; {
	case first == "t" || first == "f":
		b, err := strconv.ParseBool(strings.ToLower(want))
		if err != nil {
			return nil, fmt.Errorf("%q is neither true nor false", want)
		}
		return b, nil
	case strings.ContainsAny(first, "-0123456789"):
		n, err := strconv.ParseInt(want, 10, 64)
		if err != nil {
			return nil, fmt.Errorf("%q is no whole number", want)
		}
		return n, nil
	}
	return want, nil
}

// near names settings of the same name with another suffix: Supermicro's differ
// from board to board (QuietBoot#002E).
func near(k string, all map[string]json.RawMessage) string {
	stem, _, _ := strings.Cut(k, "#")
	for _, other := range slices.Sorted(maps.Keys(all)) {
		if s, _, _ := strings.Cut(other, "#"); strings.EqualFold(s, stem) {
			return fmt.Sprintf("; it has %q", OneLine(other))
		}
	}
	return ""
}

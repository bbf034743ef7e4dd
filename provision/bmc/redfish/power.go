// SPDX-License-Identifier: Apache-2.0

package redfish

import (
	"context"
	"slices"
	"strings"

	schema "github.com/stmcginnis/gofish/redfish"

	"github.com/ironrail/ironrail/internal/errkind"
)

// PowerState returns the property PowerState as the BMC says it: "On", "Off", or
// something in between ("PoweringOn"; HPE also "Reset", "Unknown" and null).
func (c *Client) PowerState(ctx context.Context) (schema.PowerState, error) {
	s, err := c.system(ctx)
	return schema.PowerState(s.PowerState), err
}

// Reset sends one ComputerSystem.Reset with the first of the wanted types that
// the service knows. An answer says that the request was taken, not that it had
// an effect.
func (c *Client) Reset(ctx context.Context, wanted ...schema.ResetType) error {
	s, err := c.system(ctx)
	if err != nil {
		return err
	}
	if s.Actions.Reset == nil || s.Actions.Reset.Target == "" {
		return errkind.New(errkind.Unsupported, "the system has no reset action").Do("Give the BMC user the role Operator, or use IPMI.")
	}
	known, err := c.resetTypes(ctx, *s.Actions.Reset)
	if err != nil {
		return err
	}
	at := slices.IndexFunc(wanted, func(w schema.ResetType) bool {
		return len(known) == 0 || slices.ContainsFunc(known, func(k text) bool { return allows(string(k), string(w)) })
	})
	if at < 0 {
		return errkind.New(errkind.Unsupported, "the bmc knows the resets %q, and none of %q", known, wanted)
	}
	target, ok := cleanPath(string(s.Actions.Reset.Target))
	if !ok {
		return errkind.New(errkind.Internal, "the target %q of the reset action is no path", OneLine(string(s.Actions.Reset.Target)))
	}
	_, err = c.post(ctx, target, map[string]schema.ResetType{"ResetType": wanted[at]})
	return err
}

// allows reports whether an allowable value is the wanted one. Supermicro
// SYS-510T lists "GracefulShutdownGracefulRestart" where a comma is missing.
func allows(value, wanted string) bool {
	return strings.EqualFold(value, wanted) || strings.HasPrefix(wanted, "Graceful") && strings.Contains(value, wanted)
}

// resetTypes returns the types that the service allows, from the action itself or
// from its ActionInfo; none means that it does not report.
func (c *Client) resetTypes(ctx context.Context, a resetAction) ([]text, error) {
	if len(a.Values) > 0 || a.Info == "" {
		return a.Values, nil
	}
	var info struct {
		Parameters []struct {
			Name            text
			AllowableValues []text
		}
	}
	if _, err := c.get(ctx, string(a.Info), &info); err != nil {
		return nil, err
	}
	for _, p := range info.Parameters {
		if p.Name == "ResetType" {
			return p.AllowableValues, nil
		}
	}
	return nil, nil
}

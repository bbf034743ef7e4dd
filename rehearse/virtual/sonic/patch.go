// SPDX-License-Identifier: Apache-2.0

package sonic

import (
	"encoding/json"
	"strings"

	"github.com/ironrail/ironrail/internal/errkind"
)

// operation is one of a JSON patch (RFC 6902); SONiC's patches need no others.
type operation struct {
	Op    string          `json:"op"`
	Path  string          `json:"path"`
	Value json.RawMessage `json:"value,omitempty"`
}

// applyPatch returns what a patch makes of a configuration, which is not changed.
func applyPatch(c db, ops []operation) (db, error) {
	out := cloneValue(c).(db)
	for _, o := range ops {
		if err := o.on(out); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// on does one operation.
func (o operation) on(c db) error {
	parts := strings.Split(o.Path, "/")
	if len(parts) < 2 || parts[0] != "" {
		return errkind.New(errkind.Refused, "Location must start with /")
	}
	for i, p := range parts {
		parts[i] = strings.ReplaceAll(strings.ReplaceAll(p, "~1", "/"), "~0", "~")
	}
	at, name := any(c), parts[len(parts)-1]
	for _, p := range parts[1 : len(parts)-1] {
		inner, is := at.(db)
		if !is || inner[p] == nil {
			return errkind.New(errkind.Refused, "member '%s' not found in %s", p, o.Path)
		}
		at = inner[p]
	}
	parent, is := at.(db)
	if !is {
		return errkind.New(errkind.Refused, "%s is no object", o.Path)
	}
	_, there := parent[name]
	if o.Op == "remove" {
		if !there {
			return errkind.New(errkind.Refused, "can't remove a non-existent object '%s'", name)
		}
		delete(parent, name)
		return nil
	}
	var v any
	if err := json.Unmarshal(o.Value, &v); err != nil {
		return errkind.New(errkind.Refused, "The operation does not contain a 'value' member")
	}
	switch {
	case o.Op == "add":
	case o.Op == "replace" && there:
	case o.Op == "replace":
		return errkind.New(errkind.Refused, "can't replace a non-existent object '%s'", name)
	default:
		return errkind.New(errkind.Refused, "Unknown operation '%s'", o.Op)
	}
	parent[name] = v
	return nil
}

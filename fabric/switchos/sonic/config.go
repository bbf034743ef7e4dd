// SPDX-License-Identifier: Apache-2.0

// Package sonic is the switch system SONiC in RoCE fabrics: it makes the part of
// a switch's CONFIG_DB that follows from a site, reads back what a switch has, and
// says what differs, by switch, port and field. Everything here is pure. Source:
// sonic-buildimage, src/sonic-yang-models (Configuration.md and the models), and
// sonic-swss, orchagent/qosorch.cpp and cfgmgr/buffermgr*.cpp.
package sonic

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Name is the value of the os attribute of a switch.
const Name = "sonic"

// Entry is the fields of one key. A list is its elements joined by commas.
type Entry map[string]string

// Config is a CONFIG_DB or a part of it: by table and key.
type Config map[string]map[string]Entry

// lists are the fields that are arrays in config_db.json, of those that Render
// writes.
var lists = map[string]bool{"route_map_in": true, "route_map_out": true}

// maxEntries bounds what Parse takes, in keys and fields.
const maxEntries = 1 << 20

// Parse reads a CONFIG_DB: /etc/sonic/config_db.json, `sonic-cfggen -d
// --print-data`, `show runningconfiguration all`, or a dump with flat keys
// (`sonic-db-dump -n CONFIG_DB`), whose values may lie in "value". Ports that
// share an entry ("Ethernet0,Ethernet4|3-4") and ranges of queues come out one by
// one, and references ("[WRED_PROFILE|X]" of old images) as bare names.
func Parse(data []byte) (Config, error) {
	var raw map[string]json.RawMessage
	if err := json.Unmarshal(bytes.TrimPrefix(data, []byte("\xef\xbb\xbf")), &raw); err != nil {
		return nil, fmt.Errorf("it is no CONFIG_DB: %w", err)
	}
	c, room := Config{}, maxEntries
	for _, name := range slices.Sorted(maps.Keys(raw)) {
		if table, key, flat := strings.Cut(strings.Replace(name, ":", "|", boolToInt(!strings.Contains(name, "|"))), "|"); flat {
			if err := c.read(table, key, raw[name], &room); err != nil {
				return nil, err
			}
			continue
		}
		var keys map[string]json.RawMessage
		if json.Unmarshal(raw[name], &keys) != nil {
			continue // a comment
		}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			if err := c.read(name, key, keys[key], &room); err != nil {
				return nil, err
			}
		}
	}
	if len(c) == 0 {
		return nil, errors.New("it is no CONFIG_DB: it has no table")
	}
	return c, nil
}

func boolToInt(b bool) int {
	if b {
		return 1
	}
	return 0
}

// read takes the fields of one key.
func (c Config) read(table, key string, raw json.RawMessage, room *int) error {
	var fields map[string]any
	if json.Unmarshal(raw, &fields) != nil {
		return nil // no entry
	}
	if inner, ok := fields["value"].(map[string]any); ok && len(fields) <= 4 {
		fields = inner // sonic-db-dump
	}
	e := Entry{}
	for name, v := range fields {
		if text, ok := formatScalar(v); ok && name != "NULL" {
			e[strings.TrimSuffix(name, "@")] = trimReference(text)
		}
	}
	for _, k := range keysOf(table, key) {
		if *room -= 1 + len(e); *room < 0 {
			return fmt.Errorf("it has more than %d fields", maxEntries)
		}
		c.Set(table, k, e)
	}
	return nil
}

// Set adds fields to a key, which is made when it is not there.
func (c Config) Set(table, key string, fields Entry) {
	if c[table] == nil {
		c[table] = map[string]Entry{}
	}
	if c[table][key] == nil {
		c[table][key] = Entry{}
	}
	maps.Copy(c[table][key], fields)
}

// formatScalar returns a value as text.
func formatScalar(v any) (string, bool) {
	switch v := v.(type) {
	case string:
		return v, true
	case bool:
		return strconv.FormatBool(v), true
	case float64:
		return strconv.FormatFloat(v, 'f', -1, 64), true
	case []any:
		var parts []string
		for _, e := range v {
			text, ok := formatScalar(e)
			if !ok {
				return "", false
			}
			parts = append(parts, text)
		}
		return strings.Join(parts, ","), true
	}
	return "", false
}

// trimReference removes the brackets and the table of a reference.
func trimReference(text string) string {
	inner, open := strings.CutPrefix(text, "[")
	inner, closed := strings.CutSuffix(inner, "]")
	if !open || !closed {
		return text
	}
	if _, name, found := strings.Cut(inner, "|"); found {
		return name
	}
	return text
}

// ranged are tables whose keys name queues or priority groups behind the port.
var ranged = map[string]bool{"QUEUE": true, "BUFFER_PG": true, "BUFFER_QUEUE": true}

// keysOf takes a key apart that several ports or queues share.
func keysOf(table, key string) []string {
	const most = 4096
	first, rest, inner := strings.Cut(key, "|")
	ports := []string{first}
	if strings.HasPrefix(first, "Ethernet") {
		ports = strings.Split(first, ",")
	}
	ends := []string{""}
	if inner {
		ends = []string{"|" + rest}
	}
	if from, to, is := strings.Cut(rest, "-"); ranged[table] && is {
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err == nil && err2 == nil && a >= 0 && a <= b && b < 64 {
			ends = nil
			for q := a; q <= b; q++ {
				ends = append(ends, "|"+strconv.Itoa(q))
			}
		}
	}
	if len(ports)*len(ends) > most {
		return []string{key}
	}
	var keys []string
	for _, p := range ports {
		for _, e := range ends {
			keys = append(keys, strings.TrimSpace(p)+e)
		}
	}
	return keys
}

// JSON writes the config as config_db.json has it, keys in order.
func (c Config) JSON() []byte {
	out := map[string]map[string]map[string]any{}
	for table, keys := range c {
		out[table] = map[string]map[string]any{}
		for key, e := range keys {
			out[table][key] = e.values()
		}
	}
	b, err := json.MarshalIndent(out, "", "    ")
	if err != nil {
		return nil // cannot be: maps of text
	}
	return append(b, '\n')
}

// values is an entry with its lists as arrays.
func (e Entry) values() map[string]any {
	out := map[string]any{}
	for name, text := range e {
		if lists[name] {
			out[name] = strings.Split(text, ",")
		} else {
			out[name] = text
		}
	}
	return out
}

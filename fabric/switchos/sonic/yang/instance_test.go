// SPDX-License-Identifier: Apache-2.0

package yang

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
)

// Instance writes the tables of a configuration that have rules here as instance data
// of the YANG models (RFC 7951), which `yanglint -t config` judges by the models
// themselves. Values that fit no type are written as they are. Tables and keys that
// the rules do not know are left out and named.
func Instance(db DB) (data []byte, left []string, err error) {
	out := map[string]any{}
	for _, name := range slices.Sorted(maps.Keys(db)) {
		t, ok := tables[name]
		keys, isTable := db[name].(DB)
		if !ok || !isTable {
			left = append(left, name)
			continue
		}
		content := map[string]any{}
		for _, key := range slices.Sorted(maps.Keys(keys)) {
			l, parts, ok := t.listOf(key)
			fields, isEntry := keys[key].(DB)
			if !ok || !isEntry {
				left = append(left, name+"|"+key)
				continue
			}
			if l.fixed != "" {
				content[l.name] = l.instance(name, parts, fields)
				continue
			}
			entries, _ := content[l.name].([]any)
			content[l.name] = append(entries, l.instance(name, parts, fields))
		}
		top := "sonic-" + t.module
		module, _ := out[top+":"+top].(map[string]any)
		if module == nil {
			module = map[string]any{}
			out[top+":"+top] = module
		}
		module[name] = content
	}
	data, err = json.MarshalIndent(out, "", " ")
	return data, left, err
}

// instance is one entry.
func (l list) instance(table string, parts []string, fields DB) map[string]any {
	e := map[string]any{}
	for i, k := range l.keys {
		e[k.name] = jsonValue(k.kind, parts[i])
	}
	var inner []any
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		switch i := slices.IndexFunc(l.fields, func(f leaf) bool { return f.name == name }); {
		case name == "NULL":
		case l.inner != nil:
			text, _ := fields[name].(string)
			inner = append(inner, map[string]any{l.inner[0].name: jsonValue(l.inner[0].kind, name), l.inner[1].name: jsonValue(l.inner[1].kind, text)})
		case i >= 0:
			e[name] = jsonField(l.fields[i].kind, fields[name])
		default:
			e[name] = fields[name] // for the models to refuse
		}
	}
	if inner != nil {
		e[table] = inner
	}
	return e
}

func jsonField(k kind, v any) any {
	switch v := v.(type) {
	case string:
		return jsonValue(k, v)
	case []any:
		var list []any
		for _, e := range v {
			list = append(list, jsonField(k, e))
		}
		return list
	}
	return v
}

// jsonValue is a value as JSON has it: integers of up to 32 bits and booleans are not
// texts (RFC 7951, 6.1 and 6.3).
func jsonValue(k kind, v string) any {
	switch k := k.(type) {
	case number:
		if n, err := strconv.ParseUint(v, 10, 64); err == nil && !k.long {
			return n
		}
	case boolean:
		if v == "true" || v == "false" {
			return v == "true"
		}
	}
	return v
}

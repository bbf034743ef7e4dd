// SPDX-License-Identifier: Apache-2.0

package page

import (
	"encoding"
	"encoding/json"
	"reflect"
	"strings"
	"time"
)

// openAPI is the OpenAPI 3.1 document of the JSON, made from the types that are written.
func openAPI(version string) ([]byte, error) {
	s := schemas{types: map[string]any{}, names: map[reflect.Type]string{}}
	paths := map[string]any{}
	fail := answerOf("The request cannot be answered", s.of(reflect.TypeFor[Failure]()))
	for _, rt := range routes {
		params := []any{}
		if _, name, ok := strings.Cut(rt.api, "{"); ok {
			name = strings.TrimRight(name, ".}")
			params = append(params, map[string]any{"name": name, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
		}
		for _, p := range rt.params {
			kind := "string"
			if p.name == pageParam.name {
				kind = "integer"
			}
			params = append(params, map[string]any{"name": p.name, "in": "query", "description": p.about, "schema": map[string]any{"type": kind}})
		}
		get := map[string]any{"summary": rt.summary, "responses": map[string]any{"200": answerOf(rt.title, s.of(reflect.TypeOf(rt.model))), "default": fail}}
		if len(params) > 0 {
			get["parameters"] = params
		}
		paths[prefix+strings.ReplaceAll(rt.api, "...}", "}")] = map[string]any{"get": get}
	}
	for _, verb := range []string{"hold", "release"} {
		paths[prefix+"/nodes/{name}/"+verb] = map[string]any{"post": map[string]any{
			"summary":    map[string]string{"hold": "Stop all automation on a node", "release": "Let a held node go again"}[verb],
			"security":   []any{map[string]any{"token": []any{}}},
			"parameters": []any{map[string]any{"name": "name", "in": "path", "required": true, "schema": map[string]any{"type": "string"}}},
			"requestBody": map[string]any{"content": map[string]any{"application/x-www-form-urlencoded": map[string]any{"schema": map[string]any{"type": "object",
				"properties": map[string]any{"reason": map[string]any{"type": "string", "description": "why, for whoever looks at the node next"},
					"by": map[string]any{"type": "string", "maxLength": 64, "description": "who asks, with the token; a session has a name"}}}}}},
			"responses": map[string]any{"200": answerOf("It is done", map[string]any{"type": "object", "required": []string{"node", "held"},
				"properties": map[string]any{"node": map[string]any{"type": "string"}, "held": map[string]any{"type": "boolean"}}}), "default": fail},
		}}
	}
	paths[prefix+"/live"] = map[string]any{"get": map[string]any{"summary": "Changes as they happen, as server-sent events of type change",
		"responses": map[string]any{"200": map[string]any{"description": "A stream that does not end", "content": map[string]any{"text/event-stream": map[string]any{"schema": map[string]any{"type": "string"}}}}}}}
	return json.MarshalIndent(map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": "ironrail", "version": version, "description": "What the web page of a site shows. Fields are only ever added.", "license": map[string]any{"name": "Apache-2.0", "identifier": "Apache-2.0"}},
		"servers": []any{map[string]any{"url": "/"}},
		"paths":   paths,
		"components": map[string]any{"schemas": s.types,
			"securitySchemes": map[string]any{"token": map[string]any{"type": "http", "scheme": "bearer", "description": "The content of .ironrail/web.token"}}},
	}, "", " ")
}

// answerOf is an answer with its schema.
func answerOf(about string, schema any) map[string]any {
	return map[string]any{"description": about, "content": map[string]any{"application/json": map[string]any{"schema": schema}}}
}

// schemas makes JSON schemas of types as encoding/json writes them.
type schemas struct {
	types map[string]any
	names map[reflect.Type]string
}

var (
	textMarshaler = reflect.TypeFor[encoding.TextMarshaler]()
	jsonMarshaler = reflect.TypeFor[json.Marshaler]()
)

// of is the schema of a type; structs are named, and referred to.
func (s *schemas) of(t reflect.Type) map[string]any {
	switch {
	case t == reflect.TypeFor[time.Time]():
		return map[string]any{"type": "string", "format": "date-time"}
	case t == reflect.TypeFor[json.RawMessage]():
		return map[string]any{}
	case t.Kind() == reflect.Pointer:
		return s.of(t.Elem())
	case t.Implements(textMarshaler), reflect.PointerTo(t).Implements(textMarshaler):
		return map[string]any{"type": "string"}
	case t.Implements(jsonMarshaler), reflect.PointerTo(t).Implements(jsonMarshaler):
		if t.Kind() == reflect.Int64 { // durations, in milliseconds
			return map[string]any{"type": "integer"}
		}
		return map[string]any{}
	}
	switch t.Kind() {
	case reflect.String:
		return map[string]any{"type": "string"}
	case reflect.Bool:
		return map[string]any{"type": "boolean"}
	case reflect.Float32, reflect.Float64:
		return map[string]any{"type": "number"}
	case reflect.Slice, reflect.Array:
		return map[string]any{"type": []string{"array", "null"}, "items": s.of(t.Elem())}
	case reflect.Map:
		return map[string]any{"type": []string{"object", "null"}, "additionalProperties": s.of(t.Elem())}
	case reflect.Struct:
		return s.named(t)
	case reflect.Interface:
		return map[string]any{}
	}
	return map[string]any{"type": "integer"}
}

// named is a reference to the schema of a struct.
func (s *schemas) named(t reflect.Type) map[string]any {
	name, known := s.names[t]
	if !known {
		name = t.Name()
		if _, taken := s.types[name]; taken || name == "" {
			name = strings.ToUpper(t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+1:][:1]) + t.PkgPath()[strings.LastIndexByte(t.PkgPath(), '/')+2:] + name
		}
		s.names[t] = name
		s.types[name] = nil // a type may hold itself
		properties, required := map[string]any{}, []string{}
		s.fields(t, properties, &required)
		s.types[name] = map[string]any{"type": "object", "properties": properties, "required": required}
	}
	return map[string]any{"$ref": "#/components/schemas/" + name}
}

// fields adds the fields of a struct, those of embedded ones too.
func (s *schemas) fields(t reflect.Type, properties map[string]any, required *[]string) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case tag == "-" || !f.IsExported() && !f.Anonymous:
			continue
		case f.Anonymous && tag == "":
			of := f.Type
			if of.Kind() == reflect.Pointer {
				of = of.Elem()
			}
			s.fields(of, properties, required)
			continue
		case tag == "":
			tag = f.Name
		}
		if _, hidden := properties[tag]; hidden && f.Anonymous {
			continue
		}
		properties[tag] = s.of(f.Type)
		if !strings.Contains(options, "omitempty") && !strings.Contains(options, "omitzero") && f.Type.Kind() != reflect.Pointer {
			*required = append(*required, tag)
		}
	}
}

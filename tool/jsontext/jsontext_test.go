// SPDX-License-Identifier: Apache-2.0

package jsontext

import (
	"encoding/json"
	"testing"
)

func TestFind(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, in, want string
		line           int
		cut            bool
	}{
		{"whole", `{"a":[1,2],"b":"x"}`, `{"a":[1,2],"b":"x"}`, 1, false},
		{"text around it", "Warning: {no}\n\n  {\"a\":1}\nbye {", `{"a":1}`, 3, false},
		{"list of objects", "[0] NCCL INFO x\n[\n{\"a\":1}]", "[\n{\"a\":1}]", 2, false},
		{"cut in a string", `{"a":1,"b":"x`, `{"a":1}`, 1, true},
		{"cut after a key", `{"a":1,"b"`, `{"a":1}`, 1, true},
		{"cut after a colon", `{"a":1,"b":`, `{"a":1}`, 1, true},
		{"cut in a number", `{"a":1,"b":12`, `{"a":1}`, 1, true},
		{"cut in a list", `{"r":[{"x":1},{"y":[1,2,`, `{"r":[{"x":1},{"y":[1,2]}]}`, 1, true},
		{"cut after a bracket", `{"r":[`, `{"r":[]}`, 1, true},
		{"infinite", `{"a":inf,"b":-nan,"c":[-inf]}`, `{"a":null,"b":null,"c":[null]}`, 1, false},
		{"control characters", "{\"a\":\"x\ty\"}", `{"a":"x y"}`, 1, false},
		{"no such escape", `{"a":"\-\/"}`, `{"a":"-\/"}`, 1, false},
		{"a comma too many", "{\"a\":[1, ],\"b\":2,\n\n}", `{"a":[1],"b":2}`, 1, false},
		{"brackets of another kind", `{"a":[1}`, `{"a":[1]}`, 1, true},
		{"none", "plain text [x]", "", 0, false},
	} {
		got, ok := Find([]byte(c.in))
		if ok != (c.line > 0) || string(got.Data) != c.want || got.Line != c.line || got.Cut != c.cut {
			t.Errorf("%s: got %q, line %d, cut %v", c.name, got.Data, got.Line, got.Cut)
		}
		if ok && !json.Valid(got.Data) {
			t.Errorf("%s: %q is no JSON", c.name, got.Data)
		}
	}
}

func FuzzFind(f *testing.F) {
	f.Add([]byte(`x
{"a":[1,-inf,"b\"c"],"d":{"e":tr`))
	f.Fuzz(func(t *testing.T, data []byte) {
		found, ok := Find(data)
		if ok && len(found.Data) > 5*len(data)+maxDepth {
			t.Errorf("%d bytes of %d", len(found.Data), len(data))
		}
		if json.Valid(data) && ok && found.Cut {
			t.Errorf("%q was cut from %q", found.Data, data)
		}
	})
}

// SPDX-License-Identifier: Apache-2.0

package report

import (
	"os"
	"reflect"
	"strings"
	"testing"
	"time"
)

// TestEveryFieldIsDocumented: docs/report.md names each field of the JSON form.
func TestEveryFieldIsDocumented(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/report.md")
	if err != nil {
		t.Fatal(err)
	}
	var look func(reflect.Type)
	look = func(of reflect.Type) {
		if of.Kind() == reflect.Slice {
			of = of.Elem()
		}
		if of.Kind() != reflect.Struct || of == reflect.TypeFor[time.Time]() {
			return
		}
		for i := range of.NumField() {
			f := of.Field(i)
			name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
			if !strings.Contains(string(page), "`"+name+"`") && !strings.Contains(string(page), "`"+name+"[]`") {
				t.Errorf("%s.%s (%q) is not in docs/report.md", of.Name(), f.Name, name)
			}
			look(f.Type)
		}
	}
	look(reflect.TypeFor[Input]())
	for _, v := range []string{Pass, Fail, Allowed, NotJudged, "not_proven[]"} {
		if !strings.Contains(string(page), "`"+v+"`") {
			t.Errorf("%q is not in docs/report.md", v)
		}
	}
}

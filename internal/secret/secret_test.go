// SPDX-License-Identifier: Apache-2.0

package secret

import (
	"bytes"
	"encoding/json"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestValueNeverShowsItself(t *testing.T) {
	t.Parallel()
	const canary = "Canary-7731"
	v := NewValue(canary)
	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("x", "v", v, "p", &v)
	b, err := json.Marshal(map[string]any{"v": v, "p": &v})
	if err != nil {
		t.Fatal(err)
	}
	for _, s := range []string{fmt.Sprintf("%v %+v %#v %s %q %x %d", v, v, v, v, v, v, v), fmt.Sprintf("%v", &v),
		fmt.Sprintf("%v", struct{ V Value }{v}), log.String(), string(b)} {
		if strings.Contains(s, canary) || strings.Contains(s, fmt.Sprintf("%x", canary)) {
			t.Errorf("the secret shows in %q", s)
		}
	}
	if v.Reveal() != canary {
		t.Error("the secret is lost")
	}
}

func TestResolve(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{"pw": "from-file\n", "list.csv": "serial,password\nSN1,p1\nSN2,p2\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	r := Resolver{Dir: dir, Environ: func(n string) (string, bool) { return "from-env", n == "PW" }}
	for _, c := range []struct{ ref, want, fails string }{
		{"env:PW", "from-env", ""},
		{"file:pw", "from-file", ""},
		{"csv:list.csv#SN2/password", "p2", ""},
		{"", "", ""},
		{"env:NOPE", "", "is not set"},
		{"csv:list.csv#SN9/password", "", "no row"},
		{"csv:list.csv#SN1/pin", "", "no column"},
		{"csv:list.csv", "", "form csv:FILE#ROW/COLUMN"},
		{"ssh:x", "", "does not read"},
	} {
		got, err := r.Resolve(Ref(c.ref))
		switch {
		case c.fails == "" && (err != nil || got.Reveal() != c.want):
			t.Errorf("%q: got %q, %v; want %q", c.ref, got.Reveal(), err, c.want)
		case c.fails != "" && (err == nil || !strings.Contains(err.Error(), c.fails)):
			t.Errorf("%q: error %v, want one with %q", c.ref, err, c.fails)
		}
	}
}
